package session_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkWatch compares with what it takes the place of: inotify on every folder of
// the tree, here of 1,000 files in 400 folders.
func BenchmarkWatch(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%20, i/20%19, i)] = "1"
	}
	s := stage(b, true, files)
	b.Run("set-up", func(b *testing.B) {
		for b.Loop() {
			w := start(b, s.Watched)
			b.StopTimer()
			must(b, w.Close()) // the kernel takes its time
			b.StartTimer()
		}
	})
	b.Run("set-up of inotify on the tree", func(b *testing.B) {
		for b.Loop() {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			must(b, err)
			must(b, filepath.WalkDir(s.Base[0], func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE|unix.IN_MODIFY)
				}
				return err
			}))
			b.StopTimer()
			must(b, unix.Close(fd))
			b.StartTimer()
		}
	})
	b.Run("500 changes a second", func(b *testing.B) { paced(b, 500) })
	b.Run("5000 changes a second", func(b *testing.B) { paced(b, 5000) })
}

// paced writes new files at a rate and reports the time from a write to its telling, the
// share of a processor that the whole took, and what was missed.
func paced(b *testing.B, rate int) {
	s := stage(b, false, nil)
	w := start(b, s.Watched)
	var told []time.Duration
	total := min(2*rate, 10_000)
	began := time.Now()
	for i := range total {
		if wait := time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))); wait > 0 {
			<-time.After(wait)
		}
		at := time.Now()
		must(b, os.WriteFile(fmt.Sprintf("%s/f%d", s.Side, i), nil, 0o644))
		if i%50 == 0 {
			for w.Count() <= i {
				<-w.Touched()
			}
			told = append(told, time.Since(at))
		}
	}
	for w.Count() < total {
		<-w.Touched()
	}
	took := time.Since(began)
	slices.Sort(told)
	b.ReportMetric(float64(told[len(told)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(w.Stats().LatencyP99.Microseconds())/1000, "handled-p99-ms")
	b.ReportMetric(100*float64(w.Stats().Busy)/float64(took), "%busy")
	b.ReportMetric(float64(w.Stats().QueuePeak), "queue-peak")
	if err := w.Health(); err != nil || strings.Count(strings.Join(w.Changed(), " "), "f") != total {
		b.Errorf("%d of %d, health %v", w.Count(), total, err)
	}
}
