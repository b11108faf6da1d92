package notify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
)

func ExampleWebhook() {
	users := breaker.New("users-api", breaker.Config{})
	pager := notify.NewWebhook(notify.Config{Name: "pager", URL: "https://pager.example/hooks/4f1c"})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{pager}},
		alert.Rule{Name: "users-api open", Value: alert.True(users.Tripped), When: alert.Above(0)},
		alert.Rule{Name: "pager open", Value: alert.True(pager.Breaker().Tripped), When: alert.Above(0)})
	fmt.Println(pager, len(monitor.Alerts()))
	// Output:
	// notifier "pager" 0
}

func ExampleAlertmanager() {
	// Every member of a cluster gets the alerts.
	var members []alert.Notifier
	for _, member := range []string{"a", "b"} {
		members = append(members, notify.NewAlertmanager(notify.Config{
			Name: "alertmanager-" + member, URL: "http://" + member + ".alertmanager.example:9093",
			Header: http.Header{"Authorization": {"Bearer " + os.Getenv("ALERTMANAGER_TOKEN")}},
		}))
	}
	fmt.Println(members)
	// Output:
	// [notifier "alertmanager-a" notifier "alertmanager-b"]
}

// offline is a transport without a network.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to https://hooks.slack.example/services/T0/B0/XX")
}

func ExampleNewSlack() {
	slack := notify.NewSlack(notify.Config{URL: "https://hooks.slack.example/services/T0/B0/XX", Transport: offline{}})
	fmt.Println(slack.Notify(context.Background(), alert.Alert{Rule: "fire", State: alert.Firing}))
	// Output:
	// alert: not delivered: no connection
}

func ExampleConfig() {
	fmt.Println(notify.Config{Name: "pager", URL: "pager.example/hooks/4f1c"}.Validate())
	// Output:
	// notify: URL (not shown) must be absolute, with scheme http or https
}
