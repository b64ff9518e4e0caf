package sandbox

import "testing"

func TestAFolderThatHoldsMoreThanAProgramIsNotShownForIt(t *testing.T) {
	for path, alone := range map[string]bool{
		"/home/vic/Downloads/agent":          true,
		"/home/vic/work/agent":               true,
		"/home/vic/bin/agent":                true,
		"/home/vic/.ssh/agent":               true,
		"/home/vic/.config/gcloud/x/agent":   true,
		"/home/vic/.config/gcloud/bin/agent": true,
		"/root/.ssh/agent":                   true,
		"/var/tmp/agent":                     true,
		"/tmp/agent":                         true,
		"/home/vic/node-22/bin/node":         false,
		"/home/vic/work/tool/agent":          false,
		"/home/vic/.pyenv/versions/3/bin/py": false,
		"/opt/tool/agent":                    false,
	} {
		for _, home := range []string{"/home/vic", ""} { // also where nobody says whose home it is
			if b := (Person{Home: home}).folderOf(path, path); (b.Target == path) != alone {
				t.Errorf("%s with HOME=%q shows %s", path, home, b.Target)
			}
		}
	}
}
