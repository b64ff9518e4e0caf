package main

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/race"
	"sallyport/internal/base/race/racetest"
)

// names are what this binary is when it is started under one of them; see TestMain.
var names = []string{"sallyport", "sallyport-keeper", "service"}

// watchedOneIn is of how many stories and rows one is told with programs that have the race detector in them, where this test has it: they
// take three to seven times as long, and most of a story is programs. The seed chooses; with SALLYPORT_LONG it is all of them.
const watchedOneIn = 8

// plain is the folder of the same programs without the race detector. It is made for the first who asks; TestMain removes it.
var plain struct {
	once sync.Once
	dir  string
	err  error
}

// programs is the folder of the programs that a story or row of a name is told with; "" if it is the one that is in $PATH already.
func programs(t testing.TB, name string) (string, error) {
	if !race.Enabled || disktest.Long() {
		return "", nil
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // it cannot fail
	if (int(sum.Sum32())+disktest.Seed(t))%watchedOneIn == 0 {
		t.Logf("%s is told with the race detector: SALLYPORT_SEED=%d chooses it again", name, disktest.Seed(t))
		return "", nil
	}
	plain.once.Do(makePlain)
	return plain.dir, plain.err
}

func makePlain() {
	if plain.dir, plain.err = os.MkdirTemp("", "sallyport-plain"); plain.err != nil {
		return
	}
	if plain.err = os.Chmod(plain.dir, 0o755); plain.err != nil { // a story may be told as another user, too
		return
	}
	program, err := racetest.Build(plain.dir)
	for _, name := range names {
		if err == nil {
			err = os.Link(program, filepath.Join(plain.dir, name))
		}
	}
	plain.err = err
}

// cleared is all the tests, and then the removal of what they have made for one another.
type cleared struct{ *testing.M }

func (c cleared) Run() int {
	code := c.M.Run()
	if plain.dir != "" {
		_ = os.RemoveAll(plain.dir) // a temporary folder
	}
	return code
}
