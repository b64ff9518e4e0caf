package runner

import "io"

func replay(in io.Reader, out io.Writer) int { return 2 }
