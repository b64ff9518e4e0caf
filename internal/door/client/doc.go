// Package client speaks to a home's daemon over its unix socket, and starts one where none runs.
package client
