package sandbox

import "os"

// Terminal is a pty slave. The name lets a package that may not import os pass one on to Attach.
type Terminal = *os.File
