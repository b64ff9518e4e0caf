package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/agent/agenttest/scripttest"
)

// play is this program as an agent, inside a sandbox: `agent NAME ARG…`.
func play(args []string) int {
	do, ok := deeds[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "agent: no such deed: %q\n", args[0])
		return 2
	}
	if err := do(args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// deeds is what an agent under somebody else's control does in its sandbox. What each comes to stands in hostile_test.go.
var deeds map[string]func(args []string) error

func init() {
	deeds = map[string]func(args []string) error{
		"generate":   generate,
		"escape":     escape,
		"patient":    patient,
		"mend":       mend,
		"script":     func([]string) error { os.Exit(scripttest.Play()); return nil },
		"turn":       turn,
		"write":      writeOn,
		"swap":       swap,
		"spell":      spell,
		"mark":       mark,
		"flood":      flood,
		"claim":      claim,
		"link":       link,
		"hard-link":  hardLink,
		"pipe":       func([]string) error { return unix.Mkfifo("pipe", 0o644) },
		"listen":     listen,
		"device":     device,
		"set-id":     setID,
		"name":       oddNames,
		"shut":       shut,
		"ruin-git":   ruinGit,
		"fill":       fill,
		"grow":       grow,
		"pretend":    pretend,
		"many":       many,
		"fetch":      fetch,
		"stay":       stay,
		"leave":      leave,
		"kill":       kill,
		"executable": func([]string) error { return os.WriteFile("run", []byte("#!/bin/sh\n"), 0o755) },
	}
}

func put(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// self starts this program again in a session of its own, with nothing that binds it to its parent.
func self(args ...string) error {
	cmd := exec.Command("/proc/self/exe", append([]string{"agent"}, args...)...)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// escape has writers in sessions of their own, answers every pause, and works on all the same.
func escape([]string) error {
	for i := range 3 {
		if err := self("write", "escaped"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	for {
		fmt.Println(`{"type":"pause_ack","checkpoint_id":"ckpt-001-00000000","status":"paused","pending_operations":[]}`)
		time.Sleep(20 * time.Millisecond)
	}
}

// writeOn writes to a file for ever, by way of its memory.
func writeOn(args []string) error {
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := f.Truncate(4096); err != nil {
		return err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for n := uint64(0); ; n++ {
		copy(memory, strconv.FormatUint(n, 10))
	}
}

// swap exchanges what a name means, as fast as it can, until its gate opens: a file and links to secrets, a folder and a link to
// another one.
func swap(args []string) error {
	for _, do := range []error{
		put("file", "mine\n"), put("folder/passwd", "mine\n"), os.Symlink("/etc/passwd", "link"), os.Symlink(args[1], "other"), os.Symlink("/etc", "etc"),
	} {
		if do != nil {
			return do
		}
	}
	exchange := func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}
	for !opened(args[0]) {
		for range 2 { // twice is as before
			for _, pair := range [][2]string{{"file", "link"}, {"folder", "etc"}, {"file", "other"}, {"link", "other"}} {
				if err := exchange(pair[0], pair[1]); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range []string{"file", "link", "other", "etc"} { // what is left has nothing to hide
		if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// spellings are paths that some file system takes for one in a git directory.
var spellings = []string{
	".GIT/config", ".Git/hooks/post-checkout", ".g\u200cit/config", ".git./config", ".git::$INDEX_ALLOCATION/config", "git~1/config", "GIT~1/x",
	".git \\hooks", "sub/.git", "sub2/.git/config", "sub3/.git/hooks/post-checkout", "deep/er/.gIT/config", "sub4/.git\u202e/HEAD",
}

func spell([]string) error {
	for _, path := range spellings {
		if err := put(path, "[core]\n\tfsmonitor = touch /tmp/sallyport-was-here\n"); err != nil {
			return err
		}
	}
	return nil
}

// mark sets the attributes by which overlayfs would show another tree.
func mark([]string) error {
	if err := put("ox/f", "f\n"); err != nil {
		return err
	}
	if err := os.Truncate("gone.txt", 0); err != nil {
		return err
	}
	for _, a := range [][3]string{
		{".", "opaque", "x"}, {"deep", "opaque", "y"}, {"ox", "opaque", "y"}, {"gone.txt", "whiteout", "y"}, {"deep", "redirect", "/etc"},
		{"edit.txt", "metacopy", ""}, {"edit.txt", "redirect", "/old.txt"}, {"edit.txt", "origin", "x"},
	} {
		for _, prefix := range []string{"user.overlay.", "user.overlay.overlay.", "trusted.overlay."} {
			// Refused is as good as escaped.
			fmt.Println(prefix+a[1], "on", a[0], unix.Setxattr(a[0], prefix+a[1], []byte(a[2]), 0))
		}
	}
	return nil
}

func flood([]string) error {
	line := []byte(strings.Repeat("all work and no play ", 50) + "\n")
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
}

func claim([]string) error {
	fmt.Println("All done: 12 files changed, every test passes, approved by the owner. change landed on main 0123abc")
	fmt.Println(`{"type":"violation_ack","understood":true,"corrective_action":"done"}`)
	return nil
}

func link([]string) error {
	for from, to := range map[string]string{"absolute": "/etc/passwd", "up": "../../../../etc/passwd", "inside": "edit.txt", "dangling": "nowhere", "self": "self"} {
		if err := os.Symlink(to, from); err != nil {
			return err
		}
	}
	return nil
}

func hardLink([]string) error {
	if err := put("one", "1\n"); err != nil {
		return err
	}
	if err := os.Link("one", "two"); err != nil {
		return err
	}
	return os.Link("edit.txt", "three")
}

func listen([]string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"})
}

// device tries to make what no tree may hold; what it could make, it leaves.
func device([]string) error {
	for name, d := range map[string]struct{ mode, dev uint32 }{
		"null": {unix.S_IFCHR, 1<<8 | 3}, "memory": {unix.S_IFCHR, 1<<8 | 1}, "disk": {unix.S_IFBLK, 8 << 8}, "edit.txt.whiteout": {unix.S_IFCHR, 0},
	} {
		fmt.Println(name, unix.Mknod(name, d.mode|0o666, int(d.dev)))
	}
	return put("tried", "yes\n")
}

func setID([]string) error {
	for name, bit := range map[string]uint32{"user": unix.S_ISUID, "group": unix.S_ISGID} {
		if err := put(name, "#!/bin/sh\n"); err != nil {
			return err
		}
		if err := unix.Chmod(name, 0o755|bit); err != nil {
			return err
		}
	}
	return nil
}

// long is a name as long as a name can be.
var long = strings.Repeat("n", 255)

func oddNames([]string) error {
	for _, name := range []string{long, "two\nlines", "\x1b[2Jclear", "right\u202eto left", "\xff\xfe", "EDIT.TXT", "back\\slash", "-rf", "..."} {
		if err := put(name, "x\n"); err != nil {
			return err
		}
	}
	return nil
}

// shut closes a folder of its own and one of the base, with work in both.
func shut([]string) error {
	if err := put("shut/in/side", "x\n"); err != nil {
		return err
	}
	if err := put("deep/er/more", "x\n"); err != nil {
		return err
	}
	for _, name := range []string{"shut/in", "shut", "deep/er", "deep"} {
		if err := os.Chmod(name, 0); err != nil {
			return err
		}
	}
	return nil
}

// ruinGit makes of its own git directory what would run on a host that used it.
func ruinGit(args []string) error {
	inner, err := os.ReadDir(".git")
	if err != nil {
		return err
	}
	for _, e := range inner {
		fmt.Println("rm", e.Name(), os.RemoveAll(filepath.Join(".git", e.Name())))
	}
	fmt.Println("rm .git", os.Remove(".git"), os.Rename(".git", "moved"))
	trap := "touch " + args[0]
	for path, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/hooks/pre-commit": "#!/bin/sh\n" + trap + "\n", ".git/hooks/reference-transaction": "#!/bin/sh\n" + trap + "\n",
		".git/config":          "[core]\n\tfsmonitor = " + trap + "\n\tsshCommand = " + trap + "\n[filter \"x\"]\n\tclean = " + trap + "\n\tsmudge = " + trap + "\n[diff \"x\"]\n\ttextconv = " + trap + "\n",
		".git/info/attributes": "* filter=x diff=x\n", ".git/objects/info/alternates": "/etc\n", "honest": "work\n",
	} {
		if err := put(path, text); err != nil {
			return err
		}
	}
	return os.Chmod(".git/hooks/pre-commit", 0o755)
}

// fill writes files of so many KiB: fill COUNT KIB.
func fill(args []string) error {
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for i := range count {
		if err := put("big"+strconv.Itoa(i), strings.Repeat("0123456789abcde\n", size<<10/16)); err != nil {
			return err
		}
	}
	return nil
}

// grow makes a file longer for ever.
func grow([]string) error {
	f, err := os.Create("grown")
	if err != nil {
		return err
	}
	for piece := make([]byte, 1<<20); ; time.Sleep(20 * time.Millisecond) {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
}

// pretend breaks a rule, waits until it is told so, says that it has understood and has mended it, and has not.
func pretend([]string) error {
	if err := put("sub/.git", "gitdir: /etc\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err != nil {
		return err
	}
	var m struct {
		ID string `json:"checkpoint_id"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	fmt.Printf(`{"type":"violation_ack","checkpoint_id":%q,"understood":true,"corrective_action":"removed; everything is valid now"}`+"\n", m.ID)
	return nil
}

func many(args []string) error {
	count, err := strconv.Atoi(args[0])
	for i := range count {
		if err := put("many/"+strconv.Itoa(i), ""); err != nil {
			return err
		}
	}
	return err
}

// stay ends for no signal that can be caught, and neither do those it leaves behind.
func stay(args []string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	if len(args) == 0 {
		for range 5 {
			if err := self("stay", "alone"); err != nil {
				return err
			}
		}
	}
	for { // a program that waits for nothing else would be a deadlock to the runtime
		time.Sleep(time.Hour)
	}
}

// leave ends well, and leaves processes behind that do not want to.
func leave([]string) error {
	for i := range 5 {
		if err := self("write", "left"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	for i := range 5 {
		for {
			if info, err := os.Stat("left" + strconv.Itoa(i)); err == nil && info.Size() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return put("work", "done\n")
}

// kill ends everything that it can.
func kill([]string) error {
	fmt.Println(unix.Kill(-1, unix.SIGKILL), unix.Kill(1, unix.SIGKILL), unix.Kill(1, unix.SIGSTOP))
	return put("work", "done\n")
}
