// Command pause holds the namespaces of a pod open and takes in its orphans: the first process of each pod of the
// real node, whose image would otherwise have to be downloaded.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	orphans := make(chan os.Signal, 8)
	signal.Notify(orphans, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-orphans:
			reap()
		}
	}
}

// reap takes in all that have ended: several ends may be told by one signal.
func reap() {
	var status syscall.WaitStatus
	for {
		if process, _ := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); process <= 0 {
			return
		}
	}
}
