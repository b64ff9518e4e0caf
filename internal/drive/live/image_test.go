package live

import (
	"errors"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/credential"
)

func TestOnlyWhatIsTheHomesOwnStartsFromItsImage(t *testing.T) {
	const image = "/home/ann/home/.state/images/0123/root"
	d := Defaults{Home: "/home/ann/home", Image: image}
	for name, test := range map[string]struct {
		subject Subject
		want    string
	}{
		"a conversation of a group":               {Subject{ID: "cht-abcdefgh", Group: "echo"}, image},
		"a change that a group asks for":          {Subject{ID: "chg-aaaaaaaa", Group: "echo", Top: "/home/ann/home"}, image},
		"the checks of any change of the home":    {Subject{ID: "chg-aaaaaaaa", Top: "/home/ann/home"}, image},
		"a change of another repository":          {Subject{ID: "chg-aaaaaaaa", Top: "/home/ann/src"}, ""},
		"one of a repository that lies in a home": {Subject{ID: "chg-aaaaaaaa", Top: "/home/ann/home/src"}, ""},
		"a build or a rehearsal of the host":      {Subject{ID: "chg-aaaaaaaa"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := d.Environment(t.Context(), test.subject, Way{}, false)
			if err != nil || spec.Image != test.want {
				t.Errorf("its sandboxes start from %q, %v", spec.Image, err)
			}
			if tools := d.Toolchains(test.subject); (tools != "") != (test.want != "") {
				t.Errorf("its tools are known by %q", tools)
			}
			var task agent.Task
			o := Outfitter{Agents: map[string]agent.Driver{"codex": spy{"codex", &task}}, Agency: agency{}, Shown: d, Keys: credential.NewRing(nil, func(string) string { return "key" })}
			test.subject.Agent = "codex"
			f, err := o.Equip(test.subject, agent.Task{})
			if err == nil {
				_, err = f.Program()
			}
			if !errors.Is(err, errSeen) || task.Image != test.want {
				t.Errorf("its agent's program is looked up in %q, %v", task.Image, err)
			}
		})
	}
	bare := Defaults{Home: "/home/ann/home"}
	if spec, err := bare.Environment(t.Context(), Subject{Group: "echo"}, Way{}, false); err != nil || spec.Image != "" {
		t.Errorf("without an image it starts from %q, %v", spec.Image, err)
	}
}
