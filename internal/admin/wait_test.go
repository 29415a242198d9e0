package admin

import (
	"testing"
	"time"

	"sluice/internal/engine"
)

func TestRateSaysWhenThereIsRoom(t *testing.T) {
	got := lackView(&engine.LackView{What: engine.LackRate, Wait: 622*time.Millisecond + 31})
	if want := "the rate of its backend's provider is used up: there is room in 622ms"; got.What != "rate" || got.Why != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}
