package daemon

import (
	"fmt"
	"os"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/live"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/mount"
)

// extra finds the folders that groups are shown, by what the home says at that moment. No group is shown what is sallyport's own.
func extra(settings *config.Settings, home, sockets string) live.Extra {
	return live.Extra{
		Roots:  func() ([]mount.Root, error) { return settings.Sallyport().Roots(), nil },
		Closed: []mount.Closed{{Path: home, What: "sallyport's own home"}, {Path: sockets, What: "the folder of sallyport's sockets"}},
		Homes:  []string{os.Getenv("HOME")},
	}
}

// checkMounts has a line for each folder that a group asks for and is not shown.
func checkMounts(extra live.Extra, of string, wishes []mount.Wish) (checks []api.Check) {
	for _, m := range extra.Find(wishes) {
		if m.Refused != "" {
			checks = append(checks, api.Check{
				Name: "group " + of, Ignored: true, Detail: fmt.Sprintf("its agent is not shown %s: %s", inert.Path(m.Path), m.Refused),
				Fix: "sallyport group show " + of,
			})
		}
	}
	return checks
}

// checkRoots has a line for each folder that the home lets groups be shown and that is not there.
func checkRoots(extra live.Extra) (checks []api.Check) {
	absent, err := extra.Absent()
	if err != nil {
		return nil // what is wrong with the file has a line of its own
	}
	for _, root := range absent {
		checks = append(checks, api.Check{Name: "mounts",
			Detail: fmt.Sprintf("the root %s of mounts in %s is not there, so no group is shown anything in it", inert.Path(root),
				config.SallyportFile), Fix: "ls -ld " + inert.Path(root)})
	}
	return checks
}
