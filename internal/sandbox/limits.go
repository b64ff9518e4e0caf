package sandbox

import (
	"strconv"
	"strings"
	"time"
)

// Defaults hold where a spec says nothing.
var Defaults = Limits{
	MemoryBytes:    2 << 30,
	ProcessesMax:   512,
	OutputBytes:    10 << 20,
	DescriptorsMax: 4096,
	Timeout:        time.Hour,
}

// OrDefault fills what is zero or negative: there is no sandbox without a limit.
func (l Limits) OrDefault() Limits {
	if l.MemoryBytes <= 0 {
		l.MemoryBytes = Defaults.MemoryBytes
	}
	if l.ProcessesMax <= 0 {
		l.ProcessesMax = Defaults.ProcessesMax
	}
	if l.OutputBytes <= 0 {
		l.OutputBytes = Defaults.OutputBytes
	}
	if l.DescriptorsMax <= 0 {
		l.DescriptorsMax = Defaults.DescriptorsMax
	}
	if l.Timeout <= 0 {
		l.Timeout = Defaults.Timeout
	}
	return l
}

// Bytes writes a size for a person: in the largest binary unit that keeps it exact to a tenth.
func Bytes(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, unit := float64(n), 0
	for size >= 1024 && unit < 4 {
		size /= 1024
		unit++
	}
	text := strconv.FormatFloat(size, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " " + []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}
