package checkpoint

import "sallyport/internal/workspace"

// upperBytes is how many bytes an agent's files hold, by their sizes.
func upperBytes(d workspace.Diff) (n int64) {
	for _, f := range d.Changes {
		n += f.Fact.Size
	}
	for _, l := range d.LeftOver {
		n += l.Bytes
	}
	return n
}
