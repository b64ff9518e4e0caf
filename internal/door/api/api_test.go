package api

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"sallyport/internal/base/problem"
)

func TestAProblemKeepsKindTextAndNextAcrossTheSocket(t *testing.T) {
	for kind := range statuses {
		sent := problem.Errorf(kind, "sallyport status", "thing %q is wrong", "x")
		wire, status := ProblemOf(sent)
		if status < 400 {
			t.Errorf("%s has status %d", kind, status)
		}
		got := problem.Of(wire.Err())
		if got.Kind != kind || got.Text != `thing "x" is wrong` || got.Next != "sallyport status" {
			t.Errorf("%s arrived as %+v", kind, got)
		}
	}
}

func TestAnUnknownKindArrivesAsInternal(t *testing.T) {
	if got := problem.KindOf(Problem{Kind: "novel", Text: "x"}.Err()); got != problem.Internal {
		t.Fatalf("kind %q", got)
	}
	if got := problem.KindOf(Problem{}.Err()); got != problem.Internal {
		t.Fatalf("kind %q", got)
	}
}

func TestFramesArriveAsSent(t *testing.T) {
	var wire bytes.Buffer
	big := bytes.Repeat([]byte{7}, FrameBytesMax)
	sent := []struct {
		t FrameType
		p []byte
	}{{FrameData, []byte("ls\n")}, {FrameData, nil}, {FrameResize, Resize(50, 132)}, {FrameData, big}, {FrameExit, ExitStatus(-1)}}
	for _, f := range sent {
		if err := WriteFrame(&wire, f.t, f.p); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range sent {
		typ, p, err := ReadFrame(&wire)
		if err != nil || typ != f.t || !bytes.Equal(p, f.p) {
			t.Fatalf("got %d %d bytes %v, want %d %d bytes", typ, len(p), err, f.t, len(f.p))
		}
	}
	if _, _, err := ReadFrame(&wire); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}
	if rows, cols, err := ReadResize(Resize(50, 132)); rows != 50 || cols != 132 || err != nil {
		t.Fatalf("resize %d %d %v", rows, cols, err)
	}
	if code, err := ReadExitStatus(ExitStatus(-1)); code != -1 || err != nil {
		t.Fatalf("exit %d %v", code, err)
	}
}

func FuzzReadFrameNeverTrustsALength(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{0, 255, 255, 255, 255})
	f.Add([]byte{9, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bytes.NewReader(raw)
		for {
			typ, p, err := ReadFrame(r)
			if err != nil {
				return
			}
			if typ > FrameProblem || len(p) > FrameBytesMax {
				t.Fatalf("accepted type %d with %d bytes", typ, len(p))
			}
		}
	})
}

func TestOneReleaseBackIsSpoken(t *testing.T) {
	for _, tc := range []struct {
		ours, theirs, version int
		ok                    bool
	}{
		{1, 1, 1, true}, {2, 1, 1, true}, {1, 2, 1, true}, {3, 2, 2, true}, {3, 1, 1, false}, {1, 3, 1, false}, {1, 0, 0, false}, {2, -1, -1, false}, {0, 0, 0, false},
	} {
		if version, ok := common(tc.ours, tc.theirs); ok != tc.ok || ok && version != tc.version {
			t.Errorf("%d and %d: %d, %t", tc.ours, tc.theirs, version, ok)
		}
	}
}
