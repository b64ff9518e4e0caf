package sandboxtest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
)

// over is a program that breaks one limit and no other, and stays until it is ended for that.
type over struct {
	how          string
	limit, value string
	observed     string // regular expression
	limits       sandbox.Limits
	script       string // MARK is how long its sleeps are, by which what is left alive is found
	handed       int64  // bytes of output that may be handed on at the most; 0 = whatever
	root         bool   // only root can find it
	told         bool   // the kernel has to tell how many files one has open that hides them, as Linux does from 6.2 on
}

// python runs a script that was given with one line each.
func python(lines ...string) string {
	return "exec python3 -c '" + strings.Join(append([]string{"import ctypes,mmap,os,sys,threading,time", "libc=ctypes.CDLL(None)"}, lines...), "\n") + "'"
}

// stay is what a program does that waits to be ended.
const stay = "time.sleep(MARK)"

// overs lists a program for every way of taking too much.
func overs() []over {
	memory := sandbox.Limits{MemoryBytes: 64 << 20}
	const sized = `^[0-9.]+ MiB`
	processes := sandbox.Limits{ProcessesMax: 40}
	const tasks = `^([0-9]+ at one time|more, of which [0-9]+ were refused)$`
	const storm = `^([0-9]+ at one time|more, of which [0-9]+ were refused|the kernel refused more, as stderr says)$` // over before anyone looked
	disk := sandbox.Limits{DiskBytes: 8 << 20}
	files := sandbox.Limits{FilesMax: 300}
	descriptors := sandbox.Limits{DescriptorsMax: 50}
	const opened = `^51 in one process$`
	output := sandbox.Limits{OutputBytes: 100 << 10}
	busy := sandbox.Limits{Processor: 300 * time.Millisecond}
	const burnt = `^[0-9.]+m?s$`
	brief := sandbox.Limits{Timeout: 300 * time.Millisecond}
	return []over{
		{how: "touches pages slowly", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: python("b=[]", "while True: b.append(bytearray(1<<20)); time.sleep(0.001)")},
		{how: "is many small processes", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: "for i in 1 2 3 4 5 6 7 8; do python3 -c 'import time\nb=bytearray(12<<20); time.sleep(MARK)' & done; wait"},
		{how: "fills /dev/shm", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: "while head -c 4000000 /dev/zero >> /dev/shm/f; do :; done; sleep MARK"},
		{how: "fills /tmp and its own pages", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: python(`f=open("/tmp/f","wb")`, "for i in range(40): f.write(bytes(1<<20))", "f.flush(); b=bytearray(30<<20)", stay)},
		{how: "fills files without a name", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: python(`f=[os.memfd_create("x") for i in range(20)]`, "for i in range(80): os.write(f[i%20],bytes(1<<20))", stay)},
		{how: "fills shared segments that it has not attached", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: python("libc.shmat.restype=ctypes.c_void_p", "for i in range(20):",
				" a=ctypes.c_void_p(libc.shmat(libc.shmget(0,4<<20,0o1600),None,0)); ctypes.memset(a,1,4<<20); libc.shmdt(a)", stay)},
		{how: "shares pages with its children", limit: sandbox.Memory, value: "64 MiB", observed: sized, limits: memory,
			script: python("m=mmap.mmap(-1,80<<20)", "for i in range(80): m[i<<20:(i+1)<<20]=bytes(1<<20)", stay)},

		{how: "is a storm", limit: sandbox.Processes, value: "40", observed: storm, limits: processes,
			script: "f() { f | f & }; f; i=0; while [ $i -lt 80 ]; do sleep MARK & i=$((i+1)); done; wait"},
		{how: "forks to the limit and stays", limit: sandbox.Processes, value: "40", observed: tasks, limits: processes,
			script: python("try:", " while True:", "  if os.fork()==0: "+stay, "except OSError: "+stay)},
		{how: "is threads", limit: sandbox.Processes, value: "40", observed: tasks, limits: processes,
			script: python("try:", " while True: threading.Thread(target=time.sleep,args=(MARK,),daemon=True).start()", "except RuntimeError: "+stay)},

		{how: "writes without end", limit: sandbox.Output, value: "100 KiB", observed: "^more than 100 KiB$", limits: output, handed: 100 << 10,
			script: "yes; sleep MARK"},
		{how: "writes to both", limit: sandbox.Output, value: "100 KiB", observed: "^more than 100 KiB$", limits: output, handed: 100 << 10,
			script: "(yes & yes >&2 & wait); sleep MARK"},

		{how: "writes files without end", limit: sandbox.Disk, value: "8 MiB", observed: `^[0-9.]+ [MG]iB$`, limits: disk,
			script: "i=0; while [ $i -lt 60 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done; sleep MARK"},
		{how: "waits until nobody looks, and then writes files without end", limit: sandbox.Disk, value: "8 MiB", observed: `^[0-9.]+ [MG]iB$`, limits: disk,
			script: "sleep 2; i=0; while [ $i -lt 60 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done; sleep MARK"},
		{how: "closes the folders that it writes in", limit: sandbox.Disk, value: "8 MiB", observed: `^[0-9.]+ MiB$`, limits: disk,
			script: python(`os.makedirs("a/b")`, `f=open("a/b/f","wb")`, `os.chmod("a/b",0)`, `os.chmod("a",0)`, `os.chmod(".",0)`,
				"f.write(bytes(20<<20)); f.flush()", stay)},
		{how: "keeps files open that have no name", limit: sandbox.Disk, value: "8 MiB",
			observed: `^[0-9.]+ MiB, [0-9.]+ MiB of it in open files without a name$`, limits: disk,
			script: python(`f=open("f","wb")`, `os.unlink("f")`, "f.write(bytes(20<<20)); f.flush()", stay)},
		{how: "maps files that have no name, and closes them", limit: sandbox.Disk, value: "8 MiB",
			observed: `^[0-9.]+ MiB, [0-9.]+ MiB of it in open files without a name$`, limits: disk, root: true,
			script: python(`f=os.open("f",os.O_RDWR|os.O_CREAT)`, `os.unlink("f")`, "os.ftruncate(f,20<<20)", "libc.mmap.restype=ctypes.c_void_p",
				"a=ctypes.c_void_p(libc.mmap(None,ctypes.c_size_t(20<<20),3,1,f,ctypes.c_long(0)))", "os.close(f)", "ctypes.memset(a,1,20<<20)", stay)},
		{how: "makes empty files", limit: sandbox.Files, value: "300", observed: `^[0-9]+$`, limits: files,
			script: python(`for i in range(400): open("e%d"%i,"w").close()`, stay)},
		{how: "hides files below deep folders", limit: sandbox.Depth, value: "128 folders in each other", observed: "^more$", limits: disk,
			script: python("for i in range(140):", ` os.mkdir("d"); os.chdir("d")`, stay)},

		{how: "makes empty files in its home", limit: sandbox.Files, value: "300", observed: `^[0-9]+ in /tmp, /dev/shm and the home folder$`, limits: files,
			script: python(`for i in range(400): open("/home/agent/e%d"%i,"w").close()`, stay)},

		{how: "waits until nobody looks, and then makes empty files in its home", limit: sandbox.Files, value: "300",
			observed: `^[0-9]+ in /tmp, /dev/shm and the home folder$`, limits: files,
			script: python("time.sleep(2)", `for i in range(400): open("/home/agent/e%d"%i,"w").close()`, stay)},

		{how: "burns", limit: sandbox.Processor, value: "300ms", observed: burnt, limits: busy, script: python("while True: pass")},
		{how: "burns in children that it waits for", limit: sandbox.Processor, value: "300ms", observed: burnt, limits: busy,
			script: "while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done"},
		{how: "burns in children whose end nobody is told", limit: sandbox.Processor, value: "300ms", observed: burnt, limits: busy,
			script: python("import signal", "signal.signal(signal.SIGCHLD,signal.SIG_IGN)", "while True:", " if os.fork()==0:",
				"  until=time.process_time()+0.2", "  while time.process_time()<until: pass", "  os._exit(0)", " time.sleep(0.2)")},

		{how: "sleeps", limit: sandbox.Time, value: "300ms", observed: `^[0-9.]+m?s$`, limits: brief, script: "trap '' TERM INT; sleep MARK"},
		{how: "sleeps elsewhere", limit: sandbox.Time, value: "300ms", observed: `^[0-9.]+m?s$`, limits: brief,
			script: "setsid sh -c 'sleep MARK' & wait"},

		{how: "opens without end", limit: sandbox.Descriptors, value: "50 per process", observed: opened, limits: descriptors,
			script: python("f=[]", "try:", ` while True: f.append(open("/dev/null"))`, "except OSError: "+stay)},
		{how: "opens without end, and hides", told: true, limit: sandbox.Descriptors, value: "50 per process", observed: opened, limits: descriptors,
			script: python("libc.prctl(4,0,0,0,0)", "f=[]", "try:", ` while True: f.append(open("/dev/null"))`, "except OSError: "+stay)},
		{how: "dies of it", limit: sandbox.Descriptors, value: "50 per process",
			observed: "^(51 in one process|the kernel refused more, as stderr says)$", limits: descriptors,
			script: python(`f=[open("/dev/null") for i in range(100)]`)},
	}
}

// tellsFiles reports whether this kernel says in the size of /proc/PID/fd how many files a process has open.
func tellsFiles() bool {
	st, err := os.Stat("/proc/self/fd")
	return err == nil && st.Size() > 0
}

// atOnce is how many rows run at the same time: most of them wait to be ended.
const atOnce = 4

func testLimits(t *testing.T, s Setup) {
	need(t, "python3")
	rows, mark := overs(), make([]string, len(overs()))
	ends := make([]chan result, len(rows))
	places := make(chan struct{}, atOnce)
	for i, row := range rows {
		if row.root && os.Geteuid() != 0 || row.told && !tellsFiles() {
			continue
		}
		mark[i] = marker()
		spec := s.Spec(t, strings.ReplaceAll(row.script, "MARK", mark[i]))
		spec.Limits = row.limits
		if spec.Limits.Timeout == 0 {
			spec.Limits.Timeout = Patience // a row that breaks no other is named by this one
		}
		t.Cleanup(func() { // nobody but root removes what is in a closed folder
			for _, closed := range []string{".", "a", "a/b"} {
				_ = os.Chmod(filepath.Join(cmp.Or(spec.Tree.Upper, spec.Tree.Dir), closed), 0o755)
			}
		})
		ends[i] = make(chan result, 1)
		go func() { // ends with its sandbox
			places <- struct{}{}
			defer func() { <-places }()
			ends[i] <- s.attempt(t, spec)
		}()
	}
	for i, row := range rows {
		t.Run(row.limit+"/"+row.how, func(t *testing.T) {
			if ends[i] == nil {
				t.Skip("SKIPPED: only root sees it, or only a kernel from 6.2 on tells it")
			}
			got := <-ends[i]
			must(t, got.failed)
			if got.Limit == nil || got.Limit.Name != row.limit || got.Limit.Value != row.value ||
				!regexp.MustCompile(row.observed).MatchString(got.Limit.Observed) {
				t.Fatalf("exit %+v, limit %+v, stderr %.500q", got.Exit, got.Limit, got.err)
			}
			t.Logf("%s %s: observed %s", got.Limit.Name, got.Limit.Value, got.Limit.Observed)
			if row.handed > 0 && int64(len(got.out)+len(got.err)) > row.handed {
				t.Errorf("%d bytes were handed on", len(got.out)+len(got.err))
			}
			if left := alive(t, mark[i]); len(left) > 0 {
				t.Errorf("left alive: %s", strings.Join(left, " "))
			}
		})
	}
	t.Run("what stays just below each limit is left alone", func(t *testing.T) { testBelow(t, s) })
}

// attempt is run for a goroutine that is not the test's.
func (s Setup) attempt(t *testing.T, spec sandbox.Spec) (r result) {
	var out, errs lockedBuffer
	spec.Stdout, spec.Stderr = &out, &errs
	p, err := s.Driver.Start(t.Context(), spec)
	if err != nil {
		return result{failed: err}
	}
	r.Exit, r.failed = p.Wait()
	r.out, r.err = out.String(), errs.String()
	return r
}

// testBelow is one program that takes nearly all of everything, and what must not count: apparent
// size, second names, pages that are mapped and in a file, files that are in memory and not on the disk.
func testBelow(t *testing.T, s Setup) {
	spec := s.Spec(t, python(
		`f=open("/dev/shm/f","w+b"); f.truncate(40<<20)`, "m=mmap.mmap(f.fileno(),40<<20)", "for i in range(40): m[i<<20:(i+1)<<20]=bytes(1<<20)",
		"for i in range(19): threading.Thread(target=time.sleep,args=(0.6,)).start()",
		`open("b","wb").write(bytes(6<<20)); os.link("b","c")`, `os.truncate(os.open("s",os.O_RDWR|os.O_CREAT),1<<40)`,
		`for i in range(290): open("e%d"%i,"w").close(); open("/tmp/e%d"%i,"w").close()`,
		`g=[open("/dev/null") for i in range(51-len(os.listdir("/proc/self/fd")))]`, // the listing itself is one that is gone
		`sys.stdout.write("x"*102400); sys.stdout.flush()`,
	))
	spec.Limits = sandbox.Limits{
		MemoryBytes: 80 << 20, ProcessesMax: 20, OutputBytes: 100 << 10, DiskBytes: 8 << 20, FilesMax: 300, DescriptorsMax: 50, Timeout: Patience,
	}
	if got := s.run(t, spec); got.Code != 0 || got.Limit != nil || len(got.out) != 102400 {
		t.Errorf("%+v %+v %q", got.Exit, got.Limit, got.err)
	}
}
