package sandboxtest

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func testStreams(t *testing.T, s Setup) {
	t.Run("stdout and stderr arrive whole and apart", func(t *testing.T) {
		got := s.run(t, s.Spec(t, "i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; printf tail"))
		if n := strings.Count(got.out, "\n"); n != 2000 || !strings.HasSuffix(got.out, "out 1999\ntail") {
			t.Errorf("stdout has %d lines", n)
		}
		if n := strings.Count(got.err, "\n"); n != 2000 {
			t.Errorf("stderr has %d lines", n)
		}
	})
	t.Run("stdin is what was given", func(t *testing.T) {
		spec := s.Spec(t, "wc -c")
		spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
		if got := s.run(t, spec); strings.TrimSpace(got.out) != "1048576" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no stdin is the end of a file", func(t *testing.T) {
		if got := s.run(t, s.Spec(t, "cat; echo end")); got.out != "end\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a stdin that never ends holds nobody up", func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		spec := s.Spec(t, "head -c 1; echo done")
		spec.Stdin = r
		go w.Write([]byte("x"))
		if got := s.run(t, spec); got.out != "xdone\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a reader that fails does not hang the program", func(t *testing.T) {
		spec := s.Spec(t, "head -c 1000000 /dev/zero; exit 4")
		spec.Stdout = failing{}
		p := s.start(t, spec)
		if exit, err := p.Wait(); err != nil || exit.Code != 4 {
			t.Errorf("%+v, %v", exit, err)
		}
	})
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }
