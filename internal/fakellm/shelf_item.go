package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// inputItem is what of an item says that it stands for one that is stored.
type inputItem struct {
	ID, Type, Role string
	Content        []json.RawMessage
	Sealed         string `json:"encrypted_content"`
}

// named is the id of the stored item that one stands for, empty if it stands for itself.
func (x *inputItem) named() string {
	switch x.Type {
	case "item_reference":
		return x.ID
	case "reasoning":
		if x.Sealed == "" && len(x.Content) == 0 {
			return x.ID
		}
	case "":
		if x.Role == "" {
			return x.ID
		}
	}
	return ""
}

// quote puts the stored items into an input that it names by their ids.
func (s *shelf) quote(input json.RawMessage, credential string) (json.RawMessage, *refusal) {
	var items []json.RawMessage
	if json.Unmarshal(input, &items) != nil {
		return input, nil
	}
	changed := false
	for i := range items {
		var x inputItem
		if json.Unmarshal(items[i], &x) != nil || x.named() == "" {
			continue
		}
		stored := s.item(x.named(), credential)
		if stored == nil {
			return nil, &refusal{http.StatusNotFound, "invalid_request_error", "", fmt.Sprintf("Item with id '%s' not found.", x.named())}
		}
		items[i], changed = stored, true
	}
	if !changed {
		return input, nil
	}
	return marshal(items), nil
}

// item is an item of what a credential has stored, nil if it has not.
func (s *shelf) item(id, credential string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		if k.owner != credential {
			continue
		}
		if raw := k.item(id); raw != nil {
			return raw
		}
	}
	return nil
}

func (k *shelved) item(id string) json.RawMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	output, _ := k.object["output"].([]obj)
	for _, o := range output {
		if o["id"] == id {
			return marshal(o)
		}
	}
	return nil
}
