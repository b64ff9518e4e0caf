package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// rowStarts is what a row weighs: so many starts of sallyport. dear is what a story weighs that costs more than its starts: a host that changes
// itself copies and reads its programs again and again.
const rowStarts = 6

var dear = map[string]int{"host": 140, "upgrade": 140, "full": 80}

// alone are the tests that are told as a row is, and stand in no table.
var alone = []string{
	"TestNothingThatARepositoryPlantsRunsOrChangesWhatLands", "TestThePictureOfACardIsOfARealRun", "TestThePictureOfAConversationIsOfARealRun",
	"TestThePictureSeesEverySmallThing",
}

// hands says which seeds tell a story or a row with the race detector: those with this remainder.
var hands = sync.OnceValues(func() (map[string]int, error) {
	starts, err := allStarts()
	return deal(starts, watchedOneIn), err
})

// allStarts is what each story and row weighs: about how often it starts sallyport.
func allStarts() (map[string]int, error) {
	starts := map[string]int{}
	for _, name := range alone {
		starts[name] = rowStarts
	}
	for _, row := range badInput {
		starts["TestWhatBadInputGets/"+strings.ReplaceAll(row.name, " ", "_")] = rowStarts // as it is named when it runs
	}
	files, err := filepath.Glob(storyFiles)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		told, _, _ := bytes.Cut(text, []byte("\n-- ")) // the files of the story come after it
		starts[name] = max(dear[name], bytes.Count(told, []byte("sallyport ")))
		if bytes.Contains(told, []byte("[!long] skip ")) {
			starts[name] = 1 // it is not told
		}
	}
	return starts, err
}

// deal gives out what weighs something, the heaviest first, each to the hand that holds least by then: so every hand holds about as much.
func deal(weights map[string]int, hands int) map[string]int {
	dealt, held := map[string]int{}, make([]int, hands)
	names := slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(weights[b]-weights[a], strings.Compare(a, b))
	})
	for _, name := range names {
		least := slices.Index(held, slices.Min(held))
		dealt[name] = least
		held[least] += max(weights[name], 1)
	}
	return dealt
}

func TestEverySeedHasAboutAsMuchWatched(t *testing.T) {
	starts, err := allStarts()
	if err != nil {
		t.Fatal(err)
	}
	hand, all, held := deal(starts, watchedOneIn), 0, make([]int, watchedOneIn)
	for name, n := range starts {
		held[hand[name]] += n
		all += n
	}
	share := all / watchedOneIn
	for seed, n := range held {
		if n < share*9/10 || n > share*11/10 {
			t.Errorf("of %d starts, the seeds %d of %d have %d watched, and not about %d", all, seed, watchedOneIn, n, share)
		}
	}
}

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
	dealt, err := hands()
	if err != nil {
		return "", err
	}
	hand, is := dealt[name]
	if !is {
		return "", fmt.Errorf("no seed tells %s with the race detector: is it to stand among those that are alone?", name)
	}
	if disktest.Seed(t)%watchedOneIn == hand {
		t.Logf("%s is told with the race detector: SALLYPORT_SEED=%d chooses it again", name, disktest.Seed(t))
		return "", nil
	}
	plain.once.Do(makePlain)
	return plain.dir, plain.err
}

// putRunner puts the small program of sandboxes beside the programs in $PATH, if it lies beside this one: this one takes no other, and has its
// sum then, as the product does.
func putRunner() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), racetest.Runner))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // this one does what it does
	}
	if err != nil {
		return err
	}
	program, err := exec.LookPath("sallyport")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(program), racetest.Runner), text, 0o755)
}

func makePlain() {
	if plain.dir, plain.err = os.MkdirTemp("", "sallyport-plain"); plain.err != nil {
		return
	}
	if plain.err = os.Chmod(plain.dir, 0o755); plain.err != nil { // a story may be told as another user, too
		return
	}
	program, err := racetest.BuildWithRunner(plain.dir)
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
	if err := putRunner(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := c.M.Run()
	if plain.dir != "" {
		_ = os.RemoveAll(plain.dir) // a temporary folder
	}
	return code
}
