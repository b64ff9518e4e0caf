package socket

import (
	"context"
	"os"
	"reflect"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/trust"
)

// aims is Targets by hand.
type aims struct {
	words trust.Words
	asked []string
	by    audit.Actor
}

func (a *aims) Target(_ context.Context, folder string) (trust.Words, error) {
	a.asked = append(a.asked, "show "+folder)
	return a.words, nil
}

func (a *aims) Trust(_ context.Context, folder, digest string, by audit.Actor) (trust.Words, error) {
	a.asked, a.by = append(a.asked, "trust "+folder+" "+digest), by
	return a.words, nil
}

func (a *aims) Distrust(_ context.Context, folder string, by audit.Actor) error {
	a.asked, a.by = append(a.asked, "distrust "+folder), by
	return nil
}

func TestATargetCrossesTheSocketInEveryWord(t *testing.T) {
	proposed := trust.Target{Restart: "a\u202e\nb", Within: time.Minute, Trial: 0, Proposed: true,
		Probe: trust.Probe{HTTP: "http://localhost/", Every: 2 * time.Second}}
	a := &aims{words: trust.Words{Repository: "/r", Commit: "c0", Proposed: &proposed,
		Trust: &trust.Trust{Digest: proposed.Digest(), By: "ann", UID: 7, At: time.UnixMilli(5).UTC()}}}
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Targets = a })
	got, err := client.Call(t.Context(), c, api.TargetShow, api.InRepo{Repo: "/r/sub/"})
	want := api.Target{
		Repo: "/r", Commit: "c0", Counts: api.CountsRepository, Trusted: true,
		Proposed: &api.TargetWords{
			Digest: proposed.Digest(), Restart: "a\u202e\nb", RestartWithinMS: 60_000, Defaults: []string{"probe.healthy", "probe.within", "probe.timeout"},
			Probe: &api.ProbeWords{HTTP: "http://localhost/", HealthyMS: 3_000, WithinMS: 30_000, EveryMS: 2_000, TimeoutMS: 5_000},
		},
		Trust: &api.Trust{Digest: proposed.Digest(), By: api.Actor{Kind: "person", Name: "ann", UID: 7}, At: time.UnixMilli(5).UTC()},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := client.Call(t.Context(), c, api.TargetTrust, api.TrustTarget{Repo: "/r", Digest: "0123456789ab"}); err != nil || a.by.UID != os.Geteuid() || a.by.Kind != "person" {
		t.Errorf("by %+v, %v", a.by, err)
	}
	a.by = audit.Actor{}
	if err := client.Do(t.Context(), c, api.TargetDistrust, api.InRepo{Repo: "/r"}); err != nil || a.by.UID != os.Geteuid() {
		t.Errorf("by %+v, %v", a.by, err)
	}
	for _, folder := range []string{"", "r", "/r\x00"} {
		if _, err := client.Call(t.Context(), c, api.TargetShow, api.InRepo{Repo: folder}); problem.KindOf(err) != problem.Usage {
			t.Errorf("the folder %q: %v", folder, err)
		}
		if _, err := client.Call(t.Context(), c, api.TargetTrust, api.TrustTarget{Repo: folder, Digest: "0123456789ab"}); problem.KindOf(err) != problem.Usage {
			t.Errorf("the folder %q: %v", folder, err)
		}
	}
	if want := []string{"show /r/sub", "trust /r 0123456789ab", "distrust /r"}; !reflect.DeepEqual(a.asked, want) {
		t.Errorf("asked %q", a.asked)
	}
}
