package target_test

import (
	"reflect"
	"testing"
	"time"

	"sallyport/internal/port/target"
)

// Each field that there is changes the digest: a trust in other words is no trust (SM-925).
func TestADigestNamesExactlyTheseWordsAndNumbers(t *testing.T) {
	base := target.Target{
		Restart: "a", Within: 1, Trial: 1, Proposed: true,
		Probe: target.Probe{Command: "a", HTTP: "a", Healthy: 1, Within: 1, Every: 1, Timeout: 1},
	}
	seen := map[string]string{base.Digest(): "nothing changed"}
	var walk func(v reflect.Value, path string, other func() *target.Target, at func(*target.Target) reflect.Value)
	walk = func(v reflect.Value, path string, other func() *target.Target, at func(*target.Target) reflect.Value) {
		for i := range v.NumField() {
			name := path + v.Type().Field(i).Name
			field := func(tg *target.Target) reflect.Value { return at(tg).Field(i) }
			if v.Field(i).Kind() == reflect.Struct {
				walk(v.Field(i), name+".", other, field)
				continue
			}
			tg := other()
			switch f := field(tg); f.Kind() {
			case reflect.String:
				f.SetString("a ")
			case reflect.Int64:
				f.SetInt(2)
			case reflect.Bool:
				f.SetBool(!f.Bool())
			default:
				t.Fatalf("%s has a kind that this test does not know", name)
			}
			if was, there := seen[tg.Digest()]; there {
				t.Errorf("%s does not change the digest: as %s", name, was)
			}
			seen[tg.Digest()] = name
			if (target.Trust{Digest: base.Digest()}).Covers(*tg) {
				t.Errorf("a trust covers another %s", name)
			}
		}
	}
	walk(reflect.ValueOf(base), "", func() *target.Target { tg := base; return &tg }, func(tg *target.Target) reflect.Value { return reflect.ValueOf(tg).Elem() })
	if len(seen) < 11 || !(target.Trust{Digest: base.Digest()}).Covers(base) {
		t.Errorf("%d fields were changed", len(seen)-1)
	}
}

func TestWhatCountsIsTheHomesWordThenWhatIsTrusted(t *testing.T) {
	home, mine := target.Target{Restart: "h"}, target.Target{Restart: "p", Proposed: true}
	trust := target.Trust{Digest: mine.Digest(), Words: mine}
	stale := target.Trust{Digest: target.Target{Restart: "q", Proposed: true}.Digest()}
	for name, test := range map[string]struct {
		words target.Words
		want  string
	}{
		"nothing":             {target.Words{}, ""},
		"proposed alone":      {target.Words{Proposed: &mine}, ""},
		"trusted":             {target.Words{Proposed: &mine, Trust: &trust}, "p"},
		"other words trusted": {target.Words{Proposed: &mine, Trust: &stale}, ""},
		"trust in nothing":    {target.Words{Trust: &trust}, ""},
		"the home's":          {target.Words{Home: &home, Proposed: &mine, Trust: &trust}, "h"},
	} {
		if got, ok := test.words.Counts(); got.Restart != test.want || ok != (test.want != "") {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestDefaultsStandInForWhatIsNotSaid(t *testing.T) {
	got := target.Target{Probe: target.Probe{Every: 2 * time.Second}}.Filled()
	want := target.Target{Within: time.Minute, Probe: target.Probe{Healthy: 3 * time.Second, Within: 30 * time.Second, Every: 2 * time.Second, Timeout: 5 * time.Second}}
	if got != want {
		t.Errorf("got %+v", got)
	}
}
