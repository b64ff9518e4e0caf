package trust_test

import (
	"reflect"
	"testing"
	"time"

	"sallyport/internal/rule/trust"
)

// Each field that there is changes the digest: a trust in other words is no trust (SM-925).
func TestADigestNamesExactlyTheseWordsAndNumbers(t *testing.T) {
	base := trust.Target{
		Restart: "a", Within: 1, Trial: 1, Proposed: true,
		Probe: trust.Probe{Command: "a", HTTP: "a", Healthy: 1, Within: 1, Every: 1, Timeout: 1},
	}
	seen := map[string]string{base.Digest(): "nothing changed"}
	var walk func(v reflect.Value, path string, other func() *trust.Target, at func(*trust.Target) reflect.Value)
	walk = func(v reflect.Value, path string, other func() *trust.Target, at func(*trust.Target) reflect.Value) {
		for i := range v.NumField() {
			name := path + v.Type().Field(i).Name
			field := func(tg *trust.Target) reflect.Value { return at(tg).Field(i) }
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
			if (trust.Trust{Digest: base.Digest()}).Covers(*tg) {
				t.Errorf("a trust covers another %s", name)
			}
		}
	}
	walk(reflect.ValueOf(base), "", func() *trust.Target { tg := base; return &tg }, func(tg *trust.Target) reflect.Value { return reflect.ValueOf(tg).Elem() })
	if len(seen) < 11 || !(trust.Trust{Digest: base.Digest()}).Covers(base) {
		t.Errorf("%d fields were changed", len(seen)-1)
	}
}

func TestWhatCountsIsTheHomesWordThenWhatIsTrusted(t *testing.T) {
	home, mine := trust.Target{Restart: "h"}, trust.Target{Restart: "p", Proposed: true}
	given := trust.Trust{Digest: mine.Digest(), Words: mine}
	stale := trust.Trust{Digest: trust.Target{Restart: "q", Proposed: true}.Digest()}
	for name, test := range map[string]struct {
		words trust.Words
		want  string
	}{
		"nothing":             {trust.Words{}, ""},
		"proposed alone":      {trust.Words{Proposed: &mine}, ""},
		"trusted":             {trust.Words{Proposed: &mine, Trust: &given}, "p"},
		"other words trusted": {trust.Words{Proposed: &mine, Trust: &stale}, ""},
		"trust in nothing":    {trust.Words{Trust: &given}, ""},
		"the home's":          {trust.Words{Home: &home, Proposed: &mine, Trust: &given}, "h"},
	} {
		if got, ok := test.words.Counts(); got.Restart != test.want || ok != (test.want != "") {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestDefaultsStandInForWhatIsNotSaid(t *testing.T) {
	got := trust.Target{Probe: trust.Probe{Every: 2 * time.Second}}.Filled()
	want := trust.Target{Within: time.Minute, Probe: trust.Probe{Healthy: 3 * time.Second, Within: 30 * time.Second, Every: 2 * time.Second, Timeout: 5 * time.Second}}
	if got != want {
		t.Errorf("got %+v", got)
	}
}
