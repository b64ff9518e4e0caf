package daemon

import (
	"cmp"
	"fmt"

	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
)

// atOnce is how many agents may work at the same time by the home's word.
func (d *Daemon) atOnce() int {
	return cmp.Or(d.began.Changes.AtOnce, control.WorkersDefault)
}

// checkRoom says how many agents work at the same time, and how many more the machine holds.
func (d *Daemon) checkRoom() api.Check {
	wanted, r := d.atOnce(), d.room
	if wanted > r.Sessions {
		return api.Check{
			Name: "agents at once", Fix: cmp.Or(r.More, "sallyport stats"),
			Detail: fmt.Sprintf("%d: at_once in sallyport.yaml is %d, but this machine holds no more, because it has %s", r.Sessions, wanted, r.Short),
		}
	}
	return api.Check{Name: "agents at once", OK: true,
		Detail: fmt.Sprintf("%d (at_once in sallyport.yaml); this machine holds %d: it has %s", wanted, r.Sessions, r.Short)}
}
