package bwrap

import (
	"encoding/binary"
	"fmt"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// System calls that nothing in a sandbox needs and that reach far into the
// kernel. Those of which a library asks whether they exist answer ENOSYS, so that
// it takes its older way; the rest answers EPERM. Names that an architecture
// does not have are left out.
var (
	absent = []string{
		"clone3", // its flags lie in memory, where a filter cannot look; clone is judged below
		"io_uring_setup", "io_uring_enter", "io_uring_register",
		// Their signal lies in memory too. SIGCONT, sent by the kernel, would end the stop of a frozen program.
		"timer_create", "mq_notify",
	}
	roots = []string{
		"mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
		"fspick", "mount_setattr", "setns",
	}
	denied = []string{
		"open_by_handle_at", "fanotify_init", "quotactl", "quotactl_fd", "swapon", "swapoff",
		// kernel code and its inside
		"bpf", "perf_event_open", "userfaultfd", "init_module", "finit_module", "delete_module", "create_module",
		"kexec_load", "kexec_file_load", "lookup_dcookie", "syslog", "kcmp",
		// keys outlive processes and know no namespace
		"add_key", "request_key", "keyctl",
		// the machine
		"reboot", "acct", "settimeofday", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "stime",
		"iopl", "ioperm", "vhangup", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl", "vm86", "vm86old", "modify_ldt",
	}
)

// namespaces are the flags that make one; CLONE_NEWTIME means something else in clone.
const (
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	unshared = namespaces | unix.CLONE_NEWTIME
)

// families are the kinds of socket a program may make. Others (vsock, packet,
// the crypto sockets) reach the host or code that few have read.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets in struct seccomp_data; the low half of an argument on a little-endian machine.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// filterKind is what a filter lets pass.
type filterKind string

const (
	ordinary filterKind = ""
	// strict lets no program mark a file as one that runs with the rights of its owner or group: who may write in a person's folder could
	// leave there what gives others that person's rights.
	strict filterKind = "strict"
	// rooted lets programs mount, change roots and make namespaces but those of users: for a range of uids that are nobody's.
	rooted filterKind = "rooted"
)

// filterOf is the kind that a spec needs.
func filterOf(spec sandbox.Spec) filterKind {
	switch {
	case spec.Range:
		return rooted
	case slices.ContainsFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.Writable }):
		return strict
	}
	return ordinary
}

// filter returns the seccomp program for this machine as bwrap reads it.
func filter(kind filterKind) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("system call filter: %w", err)
	}
	program, err := judge(info, kind)
	if err != nil {
		return nil, err
	}
	gone, no := absent, slices.Concat(roots, denied)
	switch kind {
	case rooted:
		no = denied
	case strict:
		program = append(program, noMarks(info)...)
		gone = append(slices.Clone(gone), "openat2") // its mode lies in memory
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{
			{Names: known(info, gone), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
			{Names: known(info, no), Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
		},
	}
	rest, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("system call filter: %w", err)
	}
	raw, err := bpf.Assemble(append(program, rest...))
	if err != nil {
		return nil, fmt.Errorf("system call filter: %w", err)
	}
	out := make([]byte, 0, 8*len(raw))
	for _, r := range raw {
		out = binary.NativeEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.NativeEndian.AppendUint32(out, r.K)
	}
	return out, nil
}

func known(info *arch.Info, names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := info.SyscallNames[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// setting are the five instructions of prlimit64 that answer who sets a limit: whose third argument is an address, which has both halves. Who
// only reads one goes on behind them.
func setting(answer bpf.Instruction) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArgs + 8*2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		bpf.LoadAbsolute{Off: atArgs + 8*2 + 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		answer,
	}
}

// judge is the part that looks at arguments. The kernel takes these as 32 bits,
// so only the low half counts: a rule over 64 bits would be passed by setting the
// high ones. It stands before the list of names, because that list lets a
// program of another architecture pass.
func judge(info *arch.Info, kind filterKind) ([]bpf.Instruction, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("system call filter: not made for big-endian machines")
	}
	no := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(errno)}
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		no(unix.ENOSYS),
	}
	// rule appends: if the call is name, load its nth argument and go through body. It ends in a return, or goes on to the next rule.
	var failed error
	rule := func(name string, nth uint32, body ...bpf.Instruction) {
		number, ok := info.SyscallNames[name]
		if !ok {
			failed = fmt.Errorf("system call filter: %s has no %s", info.Name, name)
			return
		}
		program = append(program,
			bpf.LoadAbsolute{Off: atNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(1 + len(body))},
			bpf.LoadAbsolute{Off: atArgs + 8*nth, Size: 4})
		program = append(program, body...)
	}
	allow := bpf.RetConstant{Val: uint32(seccomp.ActionAllow)}

	const exitSignal = 0xff // the part of clone's flags that says what a child's end sends
	made, left := uint32(namespaces), uint32(unshared)
	if kind == rooted {
		made, left = unix.CLONE_NEWUSER, unix.CLONE_NEWUSER // who makes one has every capability in it
	}
	rule("clone", 0,
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: made, SkipTrue: 2},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: exitSignal},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(unix.SIGCONT), SkipTrue: 1},
		no(unix.EPERM), allow)
	rule("unshare", 0, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: left, SkipFalse: 1}, no(unix.EPERM), allow)
	// The other ways to have the kernel send a SIGCONT: what is frozen stays so.
	signal := func(which uint32, at uint32) []bpf.Instruction {
		return []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: which, SkipTrue: 3},
			bpf.LoadAbsolute{Off: atArgs + 8*at, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(unix.SIGCONT), SkipTrue: 1},
			no(unix.EPERM), allow,
		}
	}
	rule("fcntl", 1, signal(unix.F_SETSIG, 2)...)
	rule("prctl", 0, signal(unix.PR_SET_PDEATHSIG, 1)...)
	// The limit of core dumps stays as the launcher has set it, and who sets one is told that it is done: a program that cannot have its own
	// core dumps switched off may refuse to run.
	done := bpf.RetConstant{Val: uint32(seccomp.ActionErrno)}
	rule("prlimit64", 1, slices.Concat([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.RLIMIT_CORE, SkipTrue: 5}}, setting(done))...)
	if _, there := info.SyscallNames["setrlimit"]; there {
		rule("setrlimit", 0, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.RLIMIT_CORE, SkipTrue: 1}, done)
	}
	// The limits of others: init is of the program's own user, and one that may run no longer, or open nothing more, is no init. A limit of its
	// own, and reading those of others, is everybody's.
	rule("prlimit64", 0, slices.Concat([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 5}}, setting(no(unix.EPERM)),
		[]bpf.Instruction{allow})...)
	// Typing into a terminal that was lent (change shell), or into the console.
	rule("ioctl", 1,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1},
		no(unix.EPERM), allow)
	var family []bpf.Instruction
	for i, f := range families {
		family = append(family, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(families) - i)})
	}
	rule("socket", 0, append(family, no(unix.EAFNOSUPPORT), allow)...)
	return program, failed
}

// fchmodat2 has the same number everywhere, and is younger than the names that the library knows.
const fchmodat2 = 452

// noMarks refuses each call that gives a file the set-user-id or set-group-id bit. A folder still inherits its parent's.
func noMarks(info *arch.Info) (program []bpf.Instruction) {
	const (
		marks = unix.S_ISUID | unix.S_ISGID
		makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY // of an open that has a mode
	)
	no, allow := bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)}, bpf.RetConstant{Val: uint32(seccomp.ActionAllow)}
	arg := func(nth uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: atArgs + 8*nth, Size: 4} }
	judged := func(nth uint32) []bpf.Instruction {
		return []bpf.Instruction{arg(nth), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: marks, SkipFalse: 1}, no, allow}
	}
	call := func(number int, body []bpf.Instruction) {
		program = append(program, bpf.LoadAbsolute{Off: atNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(body))})
		program = append(program, body...)
	}

	for nth, names := range [][]string{1: {"chmod", "fchmod", "creat", "mknod"}, 2: {"fchmodat", "mknodat"}} {
		for _, name := range known(info, names) {
			call(info.SyscallNames[name], judged(uint32(nth)))
		}
	}
	call(fchmodat2, judged(2))
	for nth, names := range [][]string{1: {"open"}, 2: {"openat"}} {
		for _, name := range known(info, names) {
			body := []bpf.Instruction{arg(uint32(nth)), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: makes, SkipTrue: 1}, allow}
			call(info.SyscallNames[name], append(body, judged(uint32(nth)+1)...))
		}
	}
	return program
}
