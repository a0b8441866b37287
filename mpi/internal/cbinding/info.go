package cbinding

import "sync"

// An infoList is the content of an info object: keys in the order in which they were added.
type infoList struct {
	mu   sync.Mutex
	keys []string
	vals map[string]string
}
