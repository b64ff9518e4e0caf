package sandbox

import "testing"

func TestAFolderThatHoldsMoreThanAProgramIsNotShownForIt(t *testing.T) {
	for path, alone := range map[string]bool{
		"/home/user/Downloads/agent":          true,
		"/home/user/projects/agent":           true,
		"/home/user/bin/agent":                true,
		"/home/user/.ssh/agent":               true,
		"/home/user/.config/gcloud/x/agent":   true,
		"/home/user/.config/gcloud/bin/agent": true,
		"/root/.ssh/agent":                    true,
		"/var/tmp/agent":                      true,
		"/tmp/agent":                          true,
		"/home/user/node-22/bin/node":         false,
		"/home/user/projects/tool/agent":      false,
		"/home/user/.pyenv/versions/3/bin/py": false,
		"/opt/tool/agent":                     false,
	} {
		for _, home := range []string{"/home/user", ""} { // also where nobody says whose home it is
			if b := (Person{Home: home}).folderOf(path, path); (b.Target == path) != alone {
				t.Errorf("%s with HOME=%q shows %s", path, home, b.Target)
			}
		}
	}
}
