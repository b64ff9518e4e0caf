package sandbox

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Defaults hold where a spec says nothing.
var Defaults = Limits{
	MemoryBytes:    2 << 30,
	ProcessesMax:   512,
	DiskBytes:      2 << 30,
	FilesMax:       1_000_000,
	OutputBytes:    10 << 20,
	DescriptorsMax: 4096,
	Timeout:        time.Hour,
}

// OrDefault fills what is zero or negative: there is no sandbox without a limit.
func (l Limits) OrDefault() Limits { return l.on(runtime.NumCPU()) }

// on is OrDefault on a machine with so many processors.
func (l Limits) on(processors int) Limits {
	fill(&l.MemoryBytes, Defaults.MemoryBytes)
	fill(&l.ProcessesMax, Defaults.ProcessesMax)
	fill(&l.DiskBytes, Defaults.DiskBytes)
	fill(&l.FilesMax, Defaults.FilesMax)
	fill(&l.OutputBytes, Defaults.OutputBytes)
	fill(&l.DescriptorsMax, Defaults.DescriptorsMax)
	fill(&l.Timeout, Defaults.Timeout)
	fill(&l.Processor, times(l.Timeout, max(coresMin, processors/2)))
	return l
}

func fill[T int | int64 | time.Duration](limit *T, usual T) {
	if *limit <= 0 {
		*limit = usual
	}
}

// times is n times d, or the longest time that there is: the time of a session that has no end is none the less a number.
func times(d time.Duration, n int) time.Duration {
	if d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

// coresMin is how many processors a sandbox may keep busy for all its time, where nothing else is said: these, or half of
// what the machine has.
const coresMin = 4

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

// Names of the limits.
const (
	Memory      = "memory"
	Processes   = "processes"
	Output      = "output"
	Time        = "time"
	Processor   = "processor"
	Descriptors = "descriptors"
	Disk        = "disk"
	Files       = "files"
	Depth       = "depth"     // of folders in each other, FoldersMax
	FreeDisk    = "free disk" // what everybody needs
)

// FoldersMax is how deep folders may lie in each other in a writable tree: what is below
// could not be counted, and a walk of the workspace would refuse it.
const FoldersMax = 128

// Limit names a limit that was broken.
type Limit struct {
	Name     string `json:"name"`     // one of the above
	Value    string `json:"value"`    // with its unit
	Observed string `json:"observed"` // with its unit
}

// OverProcessor says that programs have used more processor time than they may.
func OverProcessor(limit, used time.Duration) *Limit {
	return &Limit{Name: Processor, Value: limit.String(), Observed: used.Round(10 * time.Millisecond).String()}
}

// Setting says where a person raises the limit, as the file spells it; "" where nobody can.
func (l Limit) Setting() string {
	switch l.Name {
	case Memory, Processes, Processor, Output, Descriptors, Files:
		return "`limits: " + l.Name + ":` in sallyport.yaml"
	case Time:
		return "--timeout, or `limits: timeout:` in sallyport.yaml"
	case Disk:
		return "`interactive: shadow_workspace: max_shadow_size_mb:` in sallyport.yaml (the repository's .sallyport.yaml may say less)"
	}
	return ""
}
