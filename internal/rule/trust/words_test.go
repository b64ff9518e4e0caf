package trust_test

import (
	"reflect"
	"strings"
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
	got := trust.Target{Probe: trust.Probe{Within: 2 * time.Second}}.Filled()
	want := trust.Target{Within: time.Minute, Probe: trust.Probe{Healthy: 3 * time.Second, Within: 2 * time.Second, Every: time.Second, Timeout: 5 * time.Second}}
	if got != want {
		t.Errorf("got %+v", got)
	}
}

func TestHowLongComingUpTwiceMayTakeIsWhatIsSaidAndDefaults(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		target trust.Target
		want   time.Duration
		none   bool
	}{
		"nothing":                      {trust.Target{}, 0, true},
		"no limit is said":             {trust.Target{Restart: "r", Probe: trust.Probe{HTTP: "h"}}, 0, false},
		"a restart":                    {trust.Target{Restart: "r", Within: 5 * s}, 10 * s, false},
		"a command":                    {trust.Target{Probe: trust.Probe{Command: "c", Within: 5 * s}}, 16 * s, false},
		"an address, healthy at once":  {trust.Target{Probe: trust.Probe{HTTP: "h", Within: 5 * s, Healthy: s}}, 12 * s, false},
		"a restart's limit, and both":  {trust.Target{Restart: "r", Within: 5 * s, Probe: trust.Probe{HTTP: "h"}}, 76 * s, false},
		"a probe's limit, and both":    {trust.Target{Restart: "r", Probe: trust.Probe{HTTP: "h", Within: 5 * s}}, 136 * s, false},
		"limits of what there is not":  {trust.Target{Within: 5 * s, Probe: trust.Probe{Within: 5 * s}}, 0, true},
		"a probe's limit of a restart": {trust.Target{Restart: "r", Probe: trust.Probe{Within: 5 * s}}, 120 * s, false},
	} {
		if got, none := test.target.Allows(), test.target.None(); got != test.want || none != test.none {
			t.Errorf("%s: %s, nothing to do: %v", name, got, none)
		}
	}
}

func TestAnAddressOfAProbeIsPlainAndNamesNoPassword(t *testing.T) {
	fits := "http://h/" + strings.Repeat("a", trust.URLBytesMax-len("http://h/"))
	for text, fine := range map[string]bool{
		"http://127.0.0.1:8080/health":         true,
		"http://h":                             true,
		"http://[::1]/?a=b":                    true,
		"http://h:1/":                          true,
		"http://h:65535/":                      true,
		"http://h:0/":                          false,
		"http://h:65536/":                      false,
		"http://h:99999999999999999999999999/": false, // no number at all
		"http://h:x/":                          false,
		"http://h/\n":                          false,
		"file:///etc/passwd":                   false,
		"https://h/":                           false,
		"http:h":                               false,
		"http:///h":                            false,
		"h":                                    false,
		"":                                     false,
		"http://user@h/":                       false,
		"http://:Tulip@h/":                     false,
		"http://h/#":                           false,
		"http://h/#a":                          false,
		"http://h/a b":                         false,
		fits:                                   true,
		fits + "a":                             false,
	} {
		err := trust.CheckURL(text)
		if (err == nil) != fine {
			t.Errorf("%.80s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "Tulip") {
			t.Errorf("the password is told: %v", err)
		}
	}
}

func TestOnlyThisMachinesOwnAddressesAreLoopback(t *testing.T) {
	for text, own := range map[string]bool{
		"http://localhost:1/": true, "http://127.0.0.1/": true, "http://127.9.9.9/": true, "http://[::1]:1/": true, "http://[::ffff:127.0.0.1]/": true,
		"http://0.0.0.0/": false, "http://10.0.0.1/": false, "http://localhost.example/": false, "http://127.0.0.1.example/": false, "http://2130706433/": false, "http://h/": false, "http://\x7f": false,
	} {
		if trust.Loopback(text) != own {
			t.Errorf("%q is taken for the machine's own: %v", text, !own)
		}
	}
}
