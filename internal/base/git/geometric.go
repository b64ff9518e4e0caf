package git

// Geometric is how many sizes, from the first on, are each at least twice the sum of all that follow. What is written together with all
// behind it whenever that does not hold is written again about as often as the number of sizes grows by one.
func Geometric(sizes []int64) int {
	keep, after := len(sizes), int64(0)
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] < 2*after {
			keep = i
		}
		after += sizes[i]
	}
	return keep
}
