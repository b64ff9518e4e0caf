package bench_test

import (
	"fmt"
	"strings"
	"time"
)

// landed is one landing of the growth series, and what there was afterwards.
type landed struct {
	n        int
	took     time.Duration // of the whole command
	packs    int           // in the host's repository and the person's
	loose    int
	layers   int
	refs     int
	files    int   // that the daemon has open
	resident int64 // bytes
}

func growthTable() string {
	var out strings.Builder
	out.WriteString("## Growth\n\nOne file lands again and again, in one repository and one home. ![time by landing](growth.svg)\n\n")
	out.WriteString("| landing | ms, median of 10 | packs | loose objects | layers | refs | descriptors | MB |\n|---|---|---|---|---|---|---|---|\n")
	for _, n := range []int{10, 20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10000} {
		if n > len(series) {
			break
		}
		var ten []time.Duration
		for _, l := range series[n-10 : n] {
			ten = append(ten, l.took)
		}
		l := series[n-1]
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %d | %d | %.0f |\n", thousands(n), milliseconds(spreadOf(ten).median), l.packs, l.loose,
			l.layers, l.refs, l.files, float64(l.resident)/1e6)
	}
	return out.String()
}

// growthPicture draws each landing's time as a point, and the median of ten as a line.
func growthPicture() string {
	const width, height, left, bottom = 800, 300, 60, 40
	most := time.Millisecond
	for _, l := range series {
		most = max(most, l.took)
	}
	x := func(n int) float64 { return left + float64(n)*(width-left-10)/float64(len(series)) }
	y := func(d time.Duration) float64 { return height - bottom - d.Seconds()/most.Seconds()*(height-bottom-20) }

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<path d="M%d 20V%dH%d" fill="none" stroke="black"/>`+"\n", left, height-bottom, width-10)
	fmt.Fprintf(&out, `<text x="%d" y="24" text-anchor="end">%s ms</text><text x="%d" y="%d" text-anchor="end">0</text>`+"\n", left-6, milliseconds(most), left-6, height-bottom)
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">landing %s</text>`+"\n", width-10, height-bottom+20, thousands(len(series)))

	var line strings.Builder
	for i, l := range series {
		fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="1.5" fill="#888"/>`+"\n", x(i+1), y(l.took))
		if i < 9 {
			continue
		}
		var ten []time.Duration
		for _, near := range series[i-9 : i+1] {
			ten = append(ten, near.took)
		}
		verb := "L"
		if line.Len() == 0 {
			verb = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", verb, x(i+1), y(spreadOf(ten).median))
	}
	fmt.Fprintf(&out, `<path d="%s" fill="none" stroke="#06c" stroke-width="2"/>`+"\n</svg>\n", line.String())
	return out.String()
}
