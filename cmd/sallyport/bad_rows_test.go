package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// badInput is the table: one row for each thing that a person or an agent can do wrong.
var badInput = []bad{
	// What the repository is.
	{
		name: "not a repository", exit: 2, names: []string{"/repo"}, next: "git init",
		before: func(p *person) {
			if err := os.RemoveAll(filepath.Join(p.repo, ".git")); err != nil {
				p.t.Fatal(err)
			}
		},
	},
	{
		name: "a broken repository", ordinary: true, exit: 4, names: []string{"/repo/.git"}, next: "ls -la",
		before: func(p *person) {
			if err := os.Remove(filepath.Join(p.repo, ".git/HEAD")); err != nil {
				p.t.Fatal(err)
			}
		},
	},
	{
		name: "a bare repository", exit: 2, names: []string{"bare.git", "bare"}, next: "git clone",
		before: func(p *person) { p.git("clone", "-q", "--bare", ".", "../bare.git") },
		words:  sh("true", "--repo", "../bare.git"),
	},
	{
		name: "no such folder", exit: 2, names: []string{"nowhere"}, next: "--repo",
		words: sh("true", "--repo", "nowhere"),
	},
	{
		name: "no commits", exit: 4, names: []string{`"main"`, "no commit"}, next: "commit --allow-empty",
		before: func(p *person) { p.git("update-ref", "-d", "refs/heads/main") },
	},
	{
		name: "attributes that cannot be told", none: true, exit: 4, names: []string{".gitattributes", "NUL"}, next: "git",
		before: func(p *person) {
			p.write(".gitattributes", "*.bin\x00 filter=lfs\n")
			p.git("add", "-A")
			p.git("commit", "-q", "-m", "attributes")
		},
	},

	{
		name: "a policy that cannot be read", none: true, exit: 4, names: []string{".sallyport.yaml"}, next: "",
		before: func(p *person) {
			p.write(".sallyport.yaml", "nonsense: [\n")
			p.git("add", "-A")
			p.git("commit", "-q", "-m", "nonsense")
		},
	},

	// What the words ask for.
	{
		name: "a share that is not there", none: true, exit: 2, names: []string{"/nowhere"}, next: "sallyport run --help",
		words: sh("true", "--share", "/nowhere"),
	},
	{
		name: "a share that would show the machine", ordinary: true, none: true, exit: 4, names: []string{`"/"`}, next: "sallyport run --help",
		words: sh("true", "--share", "/"),
	},
	{
		name: "no such profile", none: true, exit: 2, names: []string{`"cobol"`, "python"}, next: "sallyport run --help",
		words: sh("true", "--profile", "cobol"),
	},
	{
		name: "no time at all", none: true, exit: 2, names: []string{"--timeout 0s"}, next: "sallyport run --help",
		words: sh("true", "--timeout", "0"),
	},
	{
		name: "more time than there is", none: true, exit: 2, names: []string{"48h0m0s", "24h0m0s"}, next: "sallyport run --help",
		words: sh("true", "--timeout", "48h"),
	},

	{
		name: "a home that is the project", exit: 2, names: []string{"/repo", "--home"}, next: "sallyport status",
		words: append([]string{"--home", "."}, sh("true")...),
	},
	{
		name: "a daemon for a home that is the project", exit: 2, names: []string{"/repo", "--home"}, next: "sallyport status",
		words: []string{"daemon", "run", "--home", "."},
	},

	// What the repository is in the middle of.
	{
		name: "a merge is under way", exit: 4, names: []string{"merge", "/repo"}, next: "merge --",
		before: func(p *person) { p.conflict(); p.stops("merge", "side") },
	},
	{
		name: "a rebase is under way", exit: 4, names: []string{"rebase", "/repo"}, next: "rebase --",
		before: func(p *person) { p.conflict(); p.stops("rebase", "side") },
	},
	{
		name: "git am is under way", exit: 4, names: []string{"am", "/repo"}, next: "am --",
		before: func(p *person) {
			p.conflict()
			p.git("format-patch", "-q", "-1", "side", "-o", "..")
			p.stops("am", "../0001-side.patch")
		},
	},
	{
		name: "a cherry-pick is under way", exit: 4, names: []string{"cherry-pick", "/repo"}, next: "cherry-pick --",
		before: func(p *person) { p.conflict(); p.stops("cherry-pick", "side") },
	},
	{
		name: "a revert is under way", exit: 4, names: []string{"revert", "/repo"}, next: "revert --",
		before: func(p *person) {
			p.conflict()
			p.write("a.txt", "again\n")
			p.git("commit", "-q", "-a", "-m", "again")
			p.stops("revert", "--no-edit", "HEAD~1")
		},
	},
	{
		name: "a bisect is under way", exit: 4, names: []string{"bisect", "/repo"}, next: "bisect reset",
		before: func(p *person) { p.git("bisect", "start") },
	},
	{
		name: "a detached HEAD", exit: 4, names: []string{"detached HEAD", "/repo"}, next: "switch",
		before: func(p *person) { p.git("switch", "-q", "--detach") },
	},
	{
		name: "a locked index", exit: 4, names: []string{"index.lock"}, next: "rm -i",
		before: func(p *person) { p.write(".git/index.lock", "") },
	},
	{
		name: "the branch is checked out in another work tree", exit: 4, names: []string{`"main"`, "elsewhere"}, next: "worktree list",
		before: func(p *person) {
			p.git("switch", "-q", "side")
			p.git("worktree", "add", "-q", "../elsewhere", "main")
		},
		words: sh("echo two > a.txt", "--approve", "yes", "--branch", "main"),
	},
	{
		name: "no such branch", none: true, exit: 2, names: []string{`"nowhere"`}, next: "branch --list",
		words: sh("true", "--branch", "nowhere"),
	},

	// What happens between the question and the answer.
	{
		name: "another branch was checked out meanwhile", exit: 4, names: []string{`"main"`, `"side"`}, next: "switch main",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) { p.git("switch", "-q", "side") },
	},
	{
		name: "a merge began meanwhile", exit: 4, names: []string{"merge"}, next: "merge --",
		before: func(p *person) { p.conflict() },
		words:  sh("echo two > b.txt"), meanwhile: func(p *person) { p.stops("merge", "side") },
	},
	{
		name: "the branch moved on at the same path", exit: 4, names: []string{"a.txt", "merge it: sallyport change branch"}, next: "change redo",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) {
			p.write("a.txt", "mine\n")
			p.git("commit", "-q", "-a", "-m", "mine")
		},
	},
	{
		name: "the person edited the same file, tracked", exit: 4, names: []string{"a.txt"}, next: "git -C",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) { p.write("a.txt", "mine\n") },
	},
	{
		name: "the person staged the same file", exit: 4, names: []string{"a.txt"}, next: "git -C",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) { p.write("a.txt", "mine\n"); p.git("add", "a.txt") },
	},
	{
		name: "the person made the same file, untracked", exit: 4, names: []string{"new.txt"}, next: "mv -i",
		words: sh("echo two > new.txt"), meanwhile: func(p *person) { p.write("new.txt", "mine\n") },
	},
	{
		name: "the person made a folder where a file is to be", exit: 4, names: []string{"new"}, next: "",
		words: sh("echo two > new"), meanwhile: func(p *person) { p.write("new/mine.txt", "mine\n") },
	},
	{
		name: "the index was locked meanwhile", exit: 4, names: []string{"index.lock"}, next: "",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) { p.write(".git/index.lock", "") },
	},

	{
		name: "git would wait on a FIFO", ordinary: true, exit: 4, names: []string{"commit-graph", "git would wait"}, next: "ls -l",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) {
			if err := unix.Mkfifo(filepath.Join(p.repo, ".git/objects/info/commit-graph"), 0o600); err != nil {
				p.t.Fatal(err)
			}
		},
	},

	// What the machine lacks.
	{
		name: "the repository's disk is full", root: true, exit: 1, names: []string{"space"}, next: "df",
		before: func(p *person) {
			old := p.repo
			p.repo = filepath.Join(p.dir, "small")
			p.small(p.repo, 4<<20, 0)
			p.git("clone", "-q", old, ".")
		},
		words: sh("head -c 6000000 /dev/urandom > big", "--approve", "yes"),
	},
	{
		name: "the home's disk is full", root: true, exit: 1, names: []string{"disk", "full"}, next: "df",
		before: func(p *person) { p.small(p.env["SALLYPORT_HOME"], 2<<20, 0) },
		words:  sh("head -c 6000000 /dev/urandom > big", "--approve", "yes"),
	},
	{
		name: "a read-only home", ordinary: true, exit: 1, names: []string{".state-of-sallyport", "cannot be written"}, next: "doctor",
		before: func(p *person) {
			home := p.env["SALLYPORT_HOME"]
			if os.Geteuid() == 0 {
				p.small(home, 1<<20, unix.MS_RDONLY)
				return
			}
			if err := os.Mkdir(home, 0o500); err != nil {
				p.t.Fatal(err)
			}
		},
	},
	{
		name: "git is too old", exit: 1, names: []string{"2.20.1"}, next: "git",
		before: func(p *person) {
			bin := filepath.Join(p.dir, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				p.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho git version 2.20.1\n"), 0o755); err != nil {
				p.t.Fatal(err)
			}
			p.env["PATH"] = bin + ":" + p.env["PATH"]
		},
	},

	// What the agent does.
	{
		name: "the agent is missing", ordinary: true, exit: 1, names: []string{"no-such-agent"},
		words: []string{"run", "--request", "x", "--approve", "yes", "--", "no-such-agent", "fix it"},
	},
	{
		name: "the agent crashes", exit: 6, names: []string{"SIGSEGV"}, next: "change log",
		words: sh("echo two > a.txt; kill -SEGV $$", "--approve", "yes"),
	},
	{
		name: "the agent fails", exit: 6, names: []string{"status 9"}, next: "change log",
		words: sh("echo two > a.txt; exit 9", "--approve", "yes"),
	},
	{
		name: "the agent hangs", ordinary: true, exit: 6, names: []string{"time", "2s"}, next: "change log",
		words: sh("echo two > a.txt; sleep 987", "--approve", "yes", "--timeout", "2s"),
		after: func(p *person, _ said) { noProcess(p.t, "sleep\x00987") },
	},
	{
		name: "the agent forks away", ordinary: true, exit: 3, names: []string{"a.txt"}, next: "sallyport approve",
		words: sh("echo two > a.txt; setsid sh -c 'sleep 986; echo later > a.txt' >/dev/null 2>&1 &"),
		after: func(p *person, _ said) { noProcess(p.t, "sleep 986") },
	},
	{
		name: "the agent says 100 MB", ordinary: true, exit: 6, names: []string{"output"}, next: "change log",
		before: tight, words: sh("echo two > a.txt; head -c 100000000 /dev/zero", "--approve", "yes"),
	},
	{
		name: "the agent says a million empty lines", exit: 6, names: []string{"output"}, next: "change log",
		before: tight, words: sh("echo two > a.txt; yes '' | head -n 1000000", "--approve", "yes"),
	},
	{
		name: "the agent writes 100 MB", ordinary: true, exit: 4, names: []string{"big"}, next: "checkpoint list",
		words: sh("head -c 100000000 /dev/urandom > big", "--approve", "yes"),
	},
	{
		name: "the agent makes a FIFO", ordinary: true, exit: 4, names: []string{"pipe", "fifo"}, next: "checkpoint list",
		words: sh("mkfifo pipe", "--approve", "yes"),
	},
	{
		name: "the agent makes a device", ordinary: true, exit: 6, names: []string{"status 1"}, next: "change log",
		words: sh("mknod device c 1 3", "--approve", "yes"),
	},
	{
		name: "the agent makes a socket", ordinary: true, exit: 4, names: []string{"talk", "socket"}, next: "checkpoint list",
		before: func(p *person) { p.needs("perl") },
		words:  sh(`perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or die; bind(S, sockaddr_un("talk")) or die'`, "--approve", "yes"),
	},
	{
		name: "the agent makes a sparse file", exit: 4, names: []string{"sparse"}, next: "checkpoint list",
		words: sh("truncate -s 1T sparse", "--approve", "yes"),
	},
	{
		name: "the agent closes a folder to everybody", ordinary: true, exit: 3, names: []string{"closed/x"}, next: "sallyport approve",
		words: sh("mkdir closed; echo x > closed/x; chmod 000 closed"),
	},
	{
		name: "the agent links out of the repository", ordinary: true, exit: 4, names: []string{"out"}, next: "checkpoint list",
		words: sh("ln -s /etc/passwd out", "--approve", "yes"),
	},
	{
		name: "the agent makes hard links", ordinary: true, exit: 4, names: []string{"twin"}, next: "checkpoint list",
		words: sh("echo x > new; ln new twin", "--approve", "yes"),
	},
	{
		name: "a name with a newline", exit: 4, names: []string{`$'new\nline'`}, next: "checkpoint list",
		words: sh(`touch a.txt; echo x > "$(printf 'new\nline')"`),
	},
	{
		name: "a name with an ANSI sequence", exit: 4, names: []string{`$'\x1b[31mred'`}, next: "checkpoint list",
		words: sh(`echo x > "$(printf '\033[31mred')"`),
	},
	{
		name: "a name with bidirectional controls", exit: 4, names: []string{`\u202e`}, next: "checkpoint list",
		words: sh(`echo x > "$(printf 'safe\342\200\256txt.exe')"`),
	},
	{
		name: "a name that looks like a flag", exit: 3, names: []string{"'-rf'"}, next: "sallyport approve",
		words: sh("echo x > ./-rf"),
	},
	{
		name: "a name that is not UTF-8", exit: 4, names: []string{`\xff`}, next: "checkpoint list",
		words: sh(`echo x > "$(printf 'a\377b')"`, "--approve", "yes"),
	},

	// Two of a kind.
	{
		name: "two runs at once on one path", exit: 4, names: []string{"a.txt"}, next: "",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) {
			if s := p.sallyport(sh("echo three > a.txt", "--approve", "yes")...); s.code != 0 {
				p.t.Fatalf("the other run: %s", s)
			}
		},
	},
	{
		name: "two homes on one repository and one path", ordinary: true, exit: 4, names: []string{"a.txt"}, next: "",
		words: sh("echo two > a.txt"), meanwhile: func(p *person) {
			if err := os.Mkdir(filepath.Join(p.dir, "other"), 0o700); err != nil {
				p.t.Fatal(err)
			}
			other := append([]string{"--home", filepath.Join(p.dir, "other")}, sh("echo three > a.txt", "--approve", "yes")...)
			if s := p.sallyport(other...); s.code != 0 {
				p.t.Fatalf("the other home: %s", s)
			}
			if s := p.sallyport("--home", filepath.Join(p.dir, "other"), "daemon", "stop"); s.code != 0 {
				p.t.Fatalf("the other daemon: %s", s)
			}
		},
	},
	{
		name: "two daemons", ordinary: true, exit: 75, names: []string{".state-of-sallyport"}, next: "sallyport daemon status",
		before: func(p *person) {
			if s := p.sallyport("daemon", "start"); s.code != 0 {
				p.t.Fatalf("the first: %s", s)
			}
		},
		words: []string{"daemon", "run"},
	},
	{
		name: "a stale socket", ordinary: true, exit: 0, names: []string{"pid"},
		before: func(p *person) {
			s := p.sallyport("daemon", "start", "--json")
			if err := kill(pidIn(p.t, s.out)); err != nil {
				p.t.Fatal(err)
			}
			left, err := filepath.Glob(filepath.Join(p.run, "sallyport", "*", "daemon.sock"))
			if err != nil || len(left) != 1 {
				p.t.Fatalf("the killed daemon left %v, %v", left, err)
			}
		},
		words: []string{"status"},
	},
}
