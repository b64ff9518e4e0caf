package sandbox

import "bytes"

// LineCost is what a line of output counts at least toward the limit, in bytes: whoever keeps lines
// keeps more than their bytes.
const LineCost = 32

// Lines counts what one stream of output costs.
type Lines struct{ length int64 } // of the line that has begun

// Cost returns what p adds: its bytes, and what each line that ends in it is short of LineCost.
func (l *Lines) Cost(p []byte) int64 {
	cost := int64(len(p))
	for {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			l.length += int64(len(p))
			return cost
		}
		cost += max(0, LineCost-l.length-int64(at)-1)
		l.length, p = 0, p[at+1:]
	}
}
