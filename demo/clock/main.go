// Command clock tells the time of a show, to whoever asks: clock ADDRESS.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

// now is when the show begins.
var now = time.Date(2026, 1, 1, 3, 7, 42, 0, time.UTC)

func tell(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, now.Format("It is 3 o'clock."))
}

func main() {
	http.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	http.HandleFunc("GET /", tell)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
