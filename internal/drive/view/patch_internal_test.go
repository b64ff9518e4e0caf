package view

import (
	"testing"
	"testing/synctest"
	"time"
)

// later is a reader who takes their time.
type later time.Duration

func (l later) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(l))
	return len(p), nil
}

func TestADifferenceEndsWhereGitIsQuietAndNotWhereAReaderIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan bool, 1)
		p := pace(later(24*time.Hour), func() { ended <- true })
		for range 3 {
			time.Sleep(quietMax - time.Nanosecond)
			if n, err := p.Write([]byte("+a")); n != 2 || err != nil {
				t.Fatal(n, err)
			}
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("a slow reader ended it")
		}
		time.Sleep(quietMax)
		synctest.Wait()
		if len(ended) == 0 {
			t.Error("nothing ends what never comes")
		}
	})
}
