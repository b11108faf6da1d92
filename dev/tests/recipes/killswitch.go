package recipes

import (
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
)

//readme:switch

// SetEnabled stops or allows the calls of a gate. Call it when your flag changes.
func SetEnabled(gate *weir.Gate, enabled bool) {
	if enabled {
		gate.Breaker().Release()
	} else {
		gate.Breaker().Force(breaker.ForcedOpen, "recommendations are switched off")
	}
}

//readme:end

//readme:switchfor

// SwitchOffFor stops the calls of a gate for d. Stop the timer if they are to stay off.
func SwitchOffFor(gate *weir.Gate, d time.Duration) *time.Timer {
	SetEnabled(gate, false)
	return time.AfterFunc(d, func() { SetEnabled(gate, true) })
}

//readme:end

// MountAdmin lets operators force a gate over HTTP.
func MountAdmin(mux *http.ServeMux, authorize func(*http.Request, admin.Action) (user string, err error), gate *weir.Gate) error {
	//readme:admin
	ops, err := admin.New(admin.Config{Authorize: authorize}, gate)
	if err != nil {
		return err
	}
	mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", ops))
	//readme:end
	return nil
}
