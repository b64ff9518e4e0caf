package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

func testProgram(t *testing.T, s Setup) {
	t.Run("exit status and signal are the program's own", func(t *testing.T) {
		for script, want := range map[string]sandbox.Exit{
			"exit 0":        {},
			"exit 7":        {Code: 7},
			"kill -TERM $$": {Code: -1, Signal: "SIGTERM"},
			"kill -KILL $$": {Code: -1, Signal: "SIGKILL"},
			"kill -TERM 1; kill -INT 1; kill -QUIT 1; kill -KILL 1; kill -SEGV 1; kill -STOP 1; exit 3": {Code: 3},
		} {
			if got := s.run(t, s.Spec(t, script)); got.Exit != want {
				t.Errorf("%q: %+v, want %+v (%s)", script, got.Exit, want, got.err)
			}
		}
	})
	t.Run("environment, folder and arguments are exactly those asked for", func(t *testing.T) {
		spec := s.Spec(t, "")
		spec.Argv = []string{"sh", "-c", `env | sort; pwd; echo "$#:$1"`, "zero", "a b\n\x1b[31m"}
		spec.Env = []string{"B=2", "PATH=/usr/bin:/bin"}
		spec.Dir = sandbox.Mountpoint + "/folder"
		got := s.run(t, spec)
		want := "B=2\nPATH=/usr/bin:/bin\nPWD=/workspace/folder\n/workspace/folder\n1:a b\n\x1b[31m\n"
		if got.out != want {
			t.Errorf("got %q, want %q (stderr %q)", got.out, want, got.err)
		}
	})
	t.Run("a missing program is named", func(t *testing.T) {
		for _, name := range []string{"no-such-program", "/usr/bin/no-such-program", "./no-such-program"} {
			spec := s.Spec(t, "")
			spec.Argv = []string{name}
			_, err := s.Driver.Start(t.Context(), spec)
			if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "no-such-program") {
				t.Errorf("%s: kind %q, %v", name, problem.KindOf(err), err)
			}
		}
	})
	t.Run("a script of the workspace runs", func(t *testing.T) {
		spec := s.Spec(t, "")
		spec.Argv = []string{"./run.sh"}
		if got := s.run(t, spec); got.out != "ran\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what cannot be meant is refused", func(t *testing.T) {
		for name, change := range map[string]func(*sandbox.Spec){
			"uid 0":            func(s *sandbox.Spec) { s.Owner.UID = 0 },
			"gid 0":            func(s *sandbox.Spec) { s.Owner.GID = 0 },
			"no program":       func(s *sandbox.Spec) { s.Argv = nil },
			"id with a path":   func(s *sandbox.Spec) { s.ID = "../x" },
			"no tree":          func(s *sandbox.Spec) { s.Tree = sandbox.Tree{} },
			"relative bind":    func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "x", Target: "/x"}} },
			"bind over /etc":   func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "/opt", Target: "/etc"}} },
			"bind in /proc":    func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "/opt", Target: "/proc/1"}} },
			"bind of nothing":  func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "/no/such", Target: "/no/such"}} },
			"layer of nothing": func(s *sandbox.Spec) { s.Tree.Layers = []string{"/no/such"} },
		} {
			spec := s.Spec(t, "true")
			change(&spec)
			if p, err := s.Driver.Start(t.Context(), spec); err == nil {
				p.Kill()
				t.Errorf("%s was started", name)
			}
		}
	})
}

func testTrees(t *testing.T, s Setup) {
	t.Run("files are the sandbox's own, and a first write to a base file works", func(t *testing.T) {
		spec := s.Spec(t, "")
		spec.Argv = []string{"/bin/sh", "-c", `stat -c %u:%g . file folder folder/inner run.sh | sort -u; id -u; echo more >> file && rm folder/inner && mv run.sh ran.sh && echo n > folder/new && chmod 700 folder && cat file`}
		got := s.run(t, spec)
		uid, gid := utoa(s.Owner.UID), utoa(s.Owner.GID)
		if want := uid + ":" + gid + "\n" + uid + "\nbase\nmore\n"; got.out != want || got.Code != 0 {
			t.Errorf("got %q (%q), want %q", got.out, got.err, want)
		}
		if raw, err := os.ReadFile(filepath.Join(spec.Tree.Layers[0], "file")); err != nil || string(raw) != "base\n" {
			t.Errorf("the base holds %q, %v", raw, err)
		}
		if raw, err := os.ReadFile(filepath.Join(spec.Tree.Upper, "file")); err != nil || string(raw) != "base\nmore\n" {
			t.Errorf("the upper directory holds %q, %v", raw, err)
		}
	})
	t.Run("an ancestor that only its owner may enter is no hindrance", func(t *testing.T) {
		must(t, os.Chmod(s.Root, 0o700))
		spec := s.Spec(t, "cat file /shown/inner")
		shown := filepath.Join(s.Root, "shown")
		must(t, os.MkdirAll(shown, 0o755))
		must(t, os.WriteFile(filepath.Join(shown, "inner"), []byte("shown\n"), 0o644))
		spec.Binds = []sandbox.Bind{{Source: shown, Target: "/shown"}}
		if got := s.run(t, spec); got.out != "base\nshown\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("layers lie on one another, the last on top", func(t *testing.T) {
		spec := s.Spec(t, "cat file folder/inner; ls")
		second := filepath.Join(filepath.Dir(spec.Tree.Upper), "second")
		must(t, os.MkdirAll(second, 0o755))
		must(t, os.WriteFile(filepath.Join(second, "file"), []byte("second\n"), 0o644))
		spec.Tree.Layers = append(spec.Tree.Layers, second)
		if got := s.run(t, spec); got.out != "second\ninner\nfile\nfolder\nrun.sh\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("the scratch git directory is mounted and leaves no trace in the tree", func(t *testing.T) {
		spec := s.Spec(t, "echo ref > .git/HEAD && cat /objects/pack && ! rm -rf .git 2>/dev/null; ls -A; ! echo x > /objects/pack")
		git, objects := filepath.Join(s.Root, "git"), filepath.Join(s.Root, "objects")
		for _, dir := range []string{git, objects} {
			must(t, os.MkdirAll(dir, 0o755))
		}
		s.give(t, git)
		must(t, os.WriteFile(filepath.Join(objects, "pack"), []byte("pack\n"), 0o644))
		spec.Tree.GitDir, spec.Tree.Objects = git, []sandbox.Bind{{Source: objects, Target: "/objects"}}
		if got := s.run(t, spec); got.out != "pack\n.git\nfile\nfolder\nrun.sh\n" || got.Code != 0 {
			t.Errorf("%+v", got)
		}
		if left, err := os.ReadDir(spec.Tree.Upper); err != nil || len(left) != 0 {
			t.Errorf("the upper directory holds %v, %v", left, err)
		}
	})
	t.Run("a tree to read cannot be written, and shows what is in the upper directory", func(t *testing.T) {
		spec := s.Spec(t, "echo changed > file")
		if got := s.run(t, spec); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		again := s.Spec(t, "cat file; echo x > file || echo x > new || rm folder/inner || mkdir y || echo held")
		again.Tree = spec.Tree
		again.Tree.ReadOnly = true
		if got := s.run(t, again); got.out != "changed\nheld\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a plain folder stands in for an overlay", func(t *testing.T) {
		spec := s.Spec(t, "cat file; echo changed > file; ls -A")
		dir := filepath.Join(s.Root, "plain")
		Fill(t, dir)
		must(t, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error { s.give(t, path); return err }))
		git := filepath.Join(s.Root, "git2")
		must(t, os.Mkdir(git, 0o755))
		must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
		spec.Tree = sandbox.Tree{Dir: dir, GitDir: git}
		if got := s.run(t, spec); got.out != "base\n.git\nfile\nfolder\nrun.sh\n" {
			t.Errorf("%+v", got)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(raw) != "changed\n" {
			t.Errorf("%q, %v", raw, err)
		}
	})
	t.Run("binds are read-only unless they say otherwise", func(t *testing.T) {
		spec := s.Spec(t, "cat /opt/tool/x; echo 1 > /opt/tool/x || echo held; echo 2 > /opt/out/y && cat /opt/one")
		tool, out, one := filepath.Join(s.Root, "tool"), filepath.Join(s.Root, "out"), filepath.Join(s.Root, "one")
		must(t, os.Mkdir(tool, 0o755))
		must(t, os.Mkdir(out, 0o755))
		s.give(t, out)
		must(t, os.WriteFile(filepath.Join(tool, "x"), []byte("tool\n"), 0o666))
		must(t, os.Chmod(filepath.Join(tool, "x"), 0o666)) // its mode would let anyone write
		must(t, os.WriteFile(one, []byte("one\n"), 0o644))
		spec.Binds = []sandbox.Bind{{Source: one, Target: "/opt/one"}, {Source: tool, Target: "/opt/tool"}, {Source: out, Target: "/opt/out", Writable: true}}
		if got := s.run(t, spec); got.out != "tool\nheld\none\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("home and tmp are private and writable, the rest is not", func(t *testing.T) {
		got := s.run(t, s.Spec(t, "touch ~/x /tmp/x /dev/shm/x && ls -A ~ /tmp | tr '\\n' ' '; for d in / /etc /usr /home /var /dev /.sallyport /proc; do touch $d/x 2>/dev/null && echo $d; done; true"))
		if got.out != "/home/agent: x  /tmp: x " {
			t.Errorf("%+v", got)
		}
	})
}
