package socket

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/api/apitest"
)

// tireless is a host that is asked to stop again and again.
type tireless struct{ host }

func (tireless) Stop() {}

// TestWhatAClientOfOneReleaseBackAsksIsUnderstood asks a daemon that a keeper has, over its socket, all that was recorded of this version and of
// the one before, and of older ones what any version is answered. Who asks is nobody, so what was understood ends there.
func TestWhatAClientOfOneReleaseBackAsksIsUnderstood(t *testing.T) {
	nobody := problem.New(problem.Denied, "that was understood")
	c, _ := serve(t, &verbs{}, func(o *Options) {
		o.Host, o.Keeper, o.People, o.Home = tireless{}, &api.Keeper{}, known{nobody}, t.TempDir()
	})
	for _, r := range apitest.Recorded(t) {
		for _, v := range r.Spoken() {
			s := api.Verbs()[slices.IndexFunc(api.Verbs(), func(s api.Spec) bool { return s.Pattern() == v.Asked })]
			for _, asked := range []apitest.Request{v.Full, v.Least} {
				status, p, _ := raw(t, c, s.Method, asked.Address, string(asked.Body), map[string]string{
					api.HeaderVersion: strconv.Itoa(r.Version), api.HeaderBuild: "another",
				})
				if s.Bare && status != 200 || !s.Bare && p.Text != nobody.Text {
					t.Errorf("version %d asks %s by %s: %d %+v", r.Version, v.Asked, asked, status, p)
				}
			}
		}
	}
}

// TestWhatEndsATrialOfTheHostIsAnsweredToAnyVersion: whoever is on the other side of a change of the wire can still end it. All else is refused.
func TestWhatEndsATrialOfTheHostIsAnsweredToAnyVersion(t *testing.T) {
	v := &verbs{}
	c, _ := serve(t, v, func(o *Options) { o.Host, o.Keeper = tireless{}, &api.Keeper{} })
	others := []string{"0", "99", strconv.Itoa(api.Version + 1), "", "one"}
	for asked, does := range map[string]string{
		"GET /v1/daemon": "", "POST /v1/daemon/stop": "",
		"GET /v1/changes/chg-00000001":             "show chg-00000001",
		"POST /v1/changes/chg-00000001/confirm":    "confirm chg-00000001 ABCD-EFGH-JKLM",
		"POST /v1/changes/chg-00000001/rollback":   `rollback chg-00000001 "worse" later`,
		"GET /v1/approvals/chg-00000001":           "approval chg-00000001",
		"POST /v1/approvals/apr-00000001/approve":  "approve apr-00000001 d1 command line",
		"POST /v1/approvals/apr-00000001/refuse":   `refuse apr-00000001 "no"`,
		"GET /v1/changes":                          "refused",
		"POST /v1/changes/chg-00000001/cancel":     "refused",
		"POST /v1/approvals/qst-00000001/answer":   "refused",
		"GET /v1/changes/chg-00000001/checkpoints": "refused",
	} {
		method, path, _ := strings.Cut(asked, " ")
		body := map[string]string{"confirm": `{"code":"ABCD-EFGH-JKLM"}`, "rollback": `{"reason":"worse","approve":"later"}`, "approve": `{"digest":"d1"}`, "refuse": `{"reason":"no"}`, "cancel": `{"reason":"no"}`}[path[strings.LastIndex(path, "/")+1:]]
		for _, version := range others {
			v.calls = nil
			status, p, _ := raw(t, c, method, path, body, map[string]string{api.HeaderVersion: version, api.HeaderBuild: "another"})
			switch {
			case does == "refused":
				if status != 503 || p.Next != "sallyport daemon stop" || v.last() != "" {
					t.Errorf("version %q, %s: %d %+v, which does %q", version, asked, status, p, v.last())
				}
			case status != 200, does != "" && v.last() != does:
				t.Errorf("version %q, %s: %d %+v, which does %q", version, asked, status, p, v.last())
			}
		}
	}
}
