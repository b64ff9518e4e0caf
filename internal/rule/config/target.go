package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/rule/trust"
)

// The kinds of value that only a target has.
type (
	Address string        // http://, see trust.CheckURL
	Trial   time.Duration // 0s, or trust.TrialMin to trust.TrialMax
)

func (a *Address) parse(text string) error {
	*a = Address(text)
	return trust.CheckURL(text)
}

func (t *Trial) parse(text string) error {
	*t = 0
	if text == "0s" {
		return nil
	}
	var d Duration
	if err := d.parse(text); err != nil {
		return err
	}
	*t = Trial(d)
	if time.Duration(d) < trust.TrialMin || time.Duration(d) > trust.TrialMax {
		return fmt.Errorf("it must lie between %s and %s, or be 0s", trust.TrialMin, trust.TrialMax)
	}
	return nil
}

func (t Trial) String() string { return time.Duration(t).String() }

// Target says how a repository's code is started again, how one knows that it answers, and how long a person has to
// confirm what has landed. Its commands are the host's own: they run outside of every sandbox.
type Target struct {
	Restart       Command  `json:"restart,omitempty" jsonschema:"What starts the code again, for sh -c in the repository's work tree, outside of every sandbox."`
	RestartWithin Duration `json:"restart_within,omitempty" min:"1s" max:"10m" jsonschema:"How long a restart may take (default 1m)."`
	Probe         Probe    `json:"probe,omitzero" jsonschema:"How one knows that it answers."`
	Trial         *Trial   `json:"trial,omitempty" jsonschema:"How long a person has to confirm what has landed, 10s to 10m; 0s asks nobody (default 2m)."`
}

// Probe asks whether the code answers.
type Probe struct {
	Command Command  `json:"command,omitempty" jsonschema:"For sh -c in the work tree, outside of every sandbox; with exit status 0 it answers. Either this or http."`
	HTTP    Address  `json:"http,omitempty" jsonschema:"An http:// address; with a status of 200 to 299 it answers. Redirects are not followed. A repository can only name this machine's own addresses."`
	Healthy Duration `json:"healthy,omitempty" min:"1s" max:"5m" jsonschema:"How long it must answer without a miss before it counts (default 3s)."`
	Within  Duration `json:"within,omitempty" min:"1s" max:"10m" jsonschema:"How long it may take to answer for the first time (default 30s)."`
	Every   Duration `json:"every,omitempty" min:"1s" max:"5s" jsonschema:"Between two tries (default 1s)."`
	Timeout Duration `json:"timeout,omitempty" min:"1s" max:"30s" jsonschema:"Of one try (default 5s)."`
}

func (p Probe) fits() error {
	switch {
	case p.Command != "" && p.HTTP != "":
		return errors.New("command and http are both set; leave one of them out")
	case p.Command == "" && p.HTTP == "":
		return errors.New("neither command nor http is set; set one of them")
	}
	return nil
}

func (t Target) fits() error {
	if t.Restart == "" && t.Probe == (Probe{}) {
		return errors.New("it has neither restart nor probe; set one of them")
	}
	if t.Restart == "" && t.RestartWithin != 0 {
		return errors.New("restart_within is set without restart")
	}
	return nil
}

// Said returns what is said in t; a trial that it leaves out has its default.
func (t Target) Said() trust.Target {
	out := trust.Target{
		Restart: string(t.Restart), Within: time.Duration(t.RestartWithin), Trial: trust.TrialDefault,
		Probe: trust.Probe{
			Command: string(t.Probe.Command), HTTP: string(t.Probe.HTTP), Healthy: time.Duration(t.Probe.Healthy),
			Within: time.Duration(t.Probe.Within), Every: time.Duration(t.Probe.Every), Timeout: time.Duration(t.Probe.Timeout),
		},
	}
	if t.Trial != nil {
		out.Trial = time.Duration(*t.Trial)
	}
	return out
}

// HomeTarget is the target of one repository, in the owner's own words.
type HomeTarget struct {
	Repository Folder `json:"repository" jsonschema:"The repository's work tree."`
	Target
}

func (t HomeTarget) fits() error {
	if t.Repository == "" {
		return errors.New("repository is missing: it names a work tree")
	}
	return t.Target.fits()
}

// Proposal is the target that a repository proposes for itself. It counts once the owner has trusted exactly these words (SM-925).
type Proposal struct{ Target }

func (p Proposal) fits() error {
	if a := p.Probe.HTTP; a != "" && !trust.Loopback(string(a)) {
		return fmt.Errorf("probe.http %q does not name this machine (localhost, 127.0.0.1 or [::1]); only the home's %s can name another",
			string(a), SallyportFile)
	}
	return p.Target.fits()
}

// Proposed returns what is proposed; false if nothing is.
func (p Proposal) Proposed() (trust.Target, bool) {
	if p == (Proposal{}) {
		return trust.Target{}, false
	}
	t := p.Said()
	t.Proposed = true
	return t, true
}

// Notify says whom the host tells that something waits for a person, was rolled back or failed.
type Notify struct {
	Command Command `json:"command,omitempty" jsonschema:"For sh -c in the home, outside of every sandbox: gets the text on its standard input and SALLYPORT_CHANGE, SALLYPORT_KIND, SALLYPORT_TEXT and SALLYPORT_NEXT; 10 s at most."`
}

func (s Sallyport) fits() error {
	for i, t := range s.Targets {
		if slices.ContainsFunc(s.Targets[:i], func(o HomeTarget) bool { return o.Repository == t.Repository }) {
			return fmt.Errorf("targets[%d]: %q has a target already", i, string(t.Repository))
		}
	}
	for i, m := range s.Mounts {
		if slices.ContainsFunc(s.Mounts[:i], func(o MountRoot) bool { return o.Root == m.Root }) {
			return fmt.Errorf("mounts[%d]: %q is a root already", i, string(m.Root))
		}
	}
	return nil
}
