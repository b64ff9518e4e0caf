package sandboxtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// Image makes a folder that is the root file system of an image with a shell, cat and what they need, copied from this machine: below
// /usr with links to it, or if it is flat without any /usr. A file named marker lies beside the programs.
func Image(t testing.TB, folder string, flat bool) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	top := folder
	must(os.MkdirAll(folder, 0o755))
	if !flat {
		top = filepath.Join(folder, "usr")
		for _, name := range []string{"bin", "lib", "lib64"} {
			must(os.Symlink("usr/"+name, filepath.Join(folder, name)))
		}
	}
	put := func(from, to string) {
		t.Helper()
		raw, err := os.ReadFile(from)
		must(err)
		must(os.MkdirAll(filepath.Dir(to), 0o755))
		must(os.WriteFile(to, raw, 0o755))
	}
	self, err := os.Executable()
	must(err)
	programs := map[string]string{"/bin/sh": "bin/sh", "/bin/cat": "bin/cat", self: ""} // the test may be init
	for program, to := range programs {
		if to != "" {
			put(program, filepath.Join(top, to))
		}
		for _, library := range libraries(program) {
			put(library, filepath.Join(top, strings.TrimPrefix(library, "/usr")))
		}
	}
	must(os.WriteFile(filepath.Join(top, "bin/marker"), []byte("of the image\n"), 0o644))
}

// libraries are the files that the machine's linker would load for a program; none of one that is static.
func libraries(program string) (paths []string) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(out)) {
		if filepath.IsAbs(word) && !strings.HasSuffix(word, ":") {
			paths = append(paths, word)
		}
	}
	return paths
}

func testImage(t *testing.T, s Setup) {
	folder := func(t *testing.T) string {
		t.Helper()
		path := filepath.Join(s.Images, fmt.Sprintf("%d-%d", os.Getpid(), serial.Add(1)))
		must(t, os.MkdirAll(path, 0o755))
		t.Cleanup(func() { os.RemoveAll(path) })
		return filepath.Join(path, "root")
	}
	write := func(t *testing.T, root, path, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	link := func(t *testing.T, root, path, to string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.Symlink(to, filepath.Join(root, path)))
	}

	t.Run("its programs are seen in place of the machine's, and cannot be written", func(t *testing.T) {
		root := folder(t)
		Image(t, root, false)
		for path, text := range map[string]string{
			"opt/tool/f": "opt\n", "etc/pki/tls/certs/f": "certs\n", "etc/passwd": "evil\n", "etc/secret": "secret\n",
			"etc/ld.so.conf.d/a.conf": "/usr/lib\n", "srv/f": "srv\n",
		} {
			write(t, root, path, text)
		}
		link(t, root, "etc/ssl/certs", "../pki/tls/certs")
		link(t, root, "etc/localtime", "/usr/bin/marker")
		must(t, os.Chmod(filepath.Join(root, "opt/tool/f"), 0o666)) // its mode would let anyone write
		spec := s.Spec(t, `cat /bin/marker /usr/bin/marker /opt/tool/f /etc/ssl/certs/f /etc/localtime /etc/ld.so.conf.d/a.conf file
			for f in /usr/bin/env /usr/bin/ls /usr/share /etc/secret /srv /etc/alternatives; do [ ! -e $f ] || echo "$f is there"; done
			for f in /usr/x /usr/bin/sh /bin/x /opt/tool/f /opt/x /etc/x /etc/ssl/certs/f; do { echo x > $f; } 2>/dev/null && echo "$f was written"; done
			while read -r _ _ _ _ at how _; do case $at in /usr | /opt | /etc/pki/tls/certs) echo ${how%%,relatime*} ;; esac; done < /proc/self/mountinfo
			while read -r line; do case $line in agent:*) echo agent ;; evil*) echo evil ;; esac; done < /etc/passwd`)
		spec.Image = root
		const protected = "ro,nosuid,nodev\n"
		if got := s.run(t, spec); got.out != "of the image\nof the image\nopt\ncerts\nof the image\n/usr/lib\nbase\n"+protected+protected+protected+"agent\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("one without /usr works, and what root alone may read is closed", func(t *testing.T) {
		root := folder(t)
		Image(t, root, true)
		write(t, root, "bin/private", "private\n")
		must(t, os.Chmod(filepath.Join(root, "bin/private"), 0o600))
		must(t, os.Mkdir(filepath.Join(root, "opt"), 0o755)) // an empty one hides nothing
		spec := s.Spec(t, `cat /bin/marker; [ -e /usr ] || [ -e /opt ] || echo without; cat /bin/private 2>/dev/null || echo closed`)
		spec.Image = root
		want := "of the image\nwithout\nclosed\n"
		if os.Geteuid() != 0 {
			want = "of the image\nwithout\nprivate\n" // it is the sandbox's own owner's
		}
		if got := s.run(t, spec); got.out != want {
			t.Errorf("%+v", got)
		}
		spec = s.Spec(t, "")
		spec.Image, spec.Argv = root, []string{"env"}
		lacking := func(err error) {
			t.Helper()
			if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), `"env"`) ||
				!strings.Contains(err.Error(), "the image "+sandbox.ImageName(root)) {
				t.Errorf("a program that it does not have: kind %q, %v", problem.KindOf(err), err)
			}
		}
		_, err := s.Driver.Start(t.Context(), spec)
		lacking(err)
		spec = s.Spec(t, "while :; do read -r line || exit; done")
		orders, tell := io.Pipe()
		defer tell.Close()
		spec.Image, spec.Stdin = root, orders
		null, err := os.Open(os.DevNull)
		must(t, err)
		defer null.Close()
		_, err = s.start(t, spec).Attach(t.Context(), []string{"env"}, nil, "", null)
		lacking(err)
	})
	t.Run("what is in it leads to nothing of the machine", func(t *testing.T) {
		fifo := func(path string) func(*testing.T, string) {
			return func(t *testing.T, root string) {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
				must(t, unix.Mkfifo(filepath.Join(root, path), 0o644))
			}
		}
		to := func(path, to string) func(*testing.T, string) {
			return func(t *testing.T, root string) { link(t, root, path, to) }
		}
		for name, made := range map[string]struct {
			evil func(*testing.T, string)
			says string
		}{
			"/usr is a link to /etc":                   {to("usr", "/etc"), `"/usr" is a link`},
			"/usr is a link upward":                    {to("usr", "../../.."), `"/usr" is a link`},
			"/usr is a link to another folder of it":   {to("usr", "sbin"), `"/usr" is a link to "sbin"`},
			"/bin is a link to /etc":                   {to("bin", "/etc"), `"/bin" is a link to "/etc"`},
			"/bin is a link out of /usr":               {to("bin", "usr/../../../etc"), `"/bin" is a link`},
			"/lib is a FIFO":                           {fifo("lib"), `"/lib" is no folder`},
			"/etc is a link":                           {to("etc", "/etc"), `"/etc/alternatives"`},
			"/etc/ssl is a link to /root":              {to("etc/ssl", "/root"), `"/etc/ssl/certs"`},
			"/etc/ssl/certs is a link to /root":        {to("etc/ssl/certs", "/root"), `"/etc/ssl/certs" is a link to "/root"`},
			"/etc/ssl/certs is a link upward":          {to("etc/ssl/certs", "../../../root"), `"/etc/ssl/certs" is a link`},
			"/etc/alternatives is a FIFO":              {fifo("etc/alternatives"), `"/etc/alternatives" is no folder`},
			"/etc/ld.so.cache is a FIFO":               {fifo("etc/ld.so.cache"), `"/etc/ld.so.cache" is no regular file`},
			"/etc/ld.so.cache is a link to a secret":   {to("etc/ld.so.cache", "/proc/self/environ"), `"/etc/ld.so.cache" is a link`},
			"/etc/ld.so.conf.d is a link":              {to("etc/ld.so.conf.d", "/root"), `"/etc/ld.so.conf.d"`},
			"/etc/ld.so.conf.d has a link to a secret": {to("etc/ld.so.conf.d/a.conf", "/root/x"), `"/etc/ld.so.conf.d/a.conf" is a link`},
			"/opt is a link":                           {to("opt", "/home"), `"/opt"`},
		} {
			t.Run(name, func(t *testing.T) {
				root := folder(t)
				must(t, os.MkdirAll(filepath.Join(root, "sbin"), 0o755)) // without the rest it would be an image, of no program
				made.evil(t, root)
				spec := s.Spec(t, "true")
				spec.Image = root
				s.refused(t, spec, made.says)
			})
		}
	})
	t.Run("what is no image of this home is not shown", func(t *testing.T) {
		root := folder(t)
		must(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
		must(t, os.Symlink("/", root+"-link"))
		for path, says := range map[string]string{
			root: "neither /usr nor", root + "-link": "-link", root + "-absent": "-absent", s.Images: "no image of this home",
			filepath.Join(s.Images, "../.."): "no image of this home", "/": "no image of this home", "images/x": "no absolute path",
		} {
			spec := s.Spec(t, "true")
			spec.Image = path
			s.refused(t, spec, says)
		}
	})
}
