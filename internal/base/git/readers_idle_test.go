package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestReadersThatWaitTooLongAreEndedAndFewWait(t *testing.T) {
	top := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", top).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(top, "objects/pack"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, r := Dir{Path: top}, &Readers{}
	ctx := r.In(t.Context())
	var leased []*reader
	for range readersPerRepo + 2 {
		q := d.reader(ctx)
		if oid, err := q.resolve("refs/heads/none"); err != nil || oid != "" {
			t.Fatalf("%q, %v", oid, err)
		}
		leased = append(leased, q)
	}
	for _, q := range leased {
		q.close()
	}
	if r.count != readersPerRepo || len(r.idle[d.place()]) != readersPerRepo {
		t.Errorf("%d wait", r.count)
	}
	begun := r.idle[d.place()][0].since
	r.sweepIdle(begun.Add(readersIdle - time.Nanosecond))
	if r.count != readersPerRepo {
		t.Errorf("%d wait before their time is over", r.count)
	}
	r.sweepIdle(begun.Add(time.Hour))
	if r.count != 0 || len(r.idle) != 0 {
		t.Errorf("%d wait for ever", r.count)
	}
}
