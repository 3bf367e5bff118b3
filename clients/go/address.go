package hookyard

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// door is the way to the daemon that the options name.
func (o *Options) door() (door, error) {
	given := 0
	for _, address := range []string{o.Lines, o.Socket, o.URL} {
		if address != "" {
			given++
		}
	}
	if given > 1 {
		return nil, errors.New("hookyard: give one of Lines, Socket and URL")
	}
	if o.Token != nil && o.URL == "" {
		return nil, errors.New("hookyard: a Token goes with a URL")
	}
	switch {
	case o.URL != "":
		address, err := daemonURL(o.URL)
		if err != nil {
			return nil, err
		}
		return newURLDoor(address, o.Token), nil
	case o.Socket != "":
		return newSocketDoor(o.Socket), nil
	case o.Lines != "":
		return newLinesDoor(o.Lines), nil
	}
	if lines := os.Getenv("HOOKYARD_LISTEN_LINES"); lines != "" {
		return newLinesDoor(lines), nil
	}
	return newSocketDoor(defaultSocket()), nil
}

func daemonURL(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Hostname() == "" {
		return nil, fmt.Errorf("hookyard: %q is not the URL of a daemon, such as http://127.0.0.1:8787", text)
	}
	address.Path = strings.TrimRight(address.Path, "/") + "/v1/events"
	address.RawPath, address.RawQuery, address.Fragment = "", "", ""
	return address, nil
}

// defaultSocket is the path of the event socket as the daemon itself chooses it.
func defaultSocket() string {
	if socket := os.Getenv("HOOKYARD_LISTEN_SOCKET"); socket != "" {
		return socket
	}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return runtime + "/hookyard.sock"
	}
	return fmt.Sprintf("/tmp/hookyard-%d/hookyard.sock", os.Geteuid())
}
