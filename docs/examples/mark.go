// Marks paths at the spoord of this machine: go run mark.go bucket/object ...
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const socket = "/run/spoor/spoor.sock"

func main() {
	client := http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
		},
	}
	if err := mark(&client, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "not marked:", err)
		os.Exit(1)
	}
}

// mark returns once the daemon has acknowledged the paths. After an error, mark them again.
func mark(client *http.Client, paths []string) error {
	// NUL-separated, since a name need not be UTF-8 and may hold a newline.
	body := strings.Join(paths, "\x00") + "\x00"
	response, err := client.Post("http://localhost/v1/marks?delimiter=nul", "text/plain", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		json.NewDecoder(response.Body).Decode(&problem)
		return fmt.Errorf("%s: %s", response.Status, problem.Detail)
	}
	return nil
}
