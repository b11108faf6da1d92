package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/stat"
)

// A rule over the breaker of a notifier, whose alerts go to the other notifier.
func ExampleNewWebhook() {
	pager := notify.NewWebhook(notify.Config{Name: "pager", URL: "https://pager.example/hooks/4f1c"})
	chat := notify.NewSlack(notify.Config{URL: "https://hooks.slack.example/services/T0/B0/XX"})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{pager, chat}}, alert.Rule{
		Name: "pager is down", Value: alert.Transitions(pager.(stat.Source), "open", 15*time.Minute), When: alert.Above(0),
	})
	fmt.Println(pager, len(monitor.Alerts()))
	// Output:
	// notifier "pager" 0
}

func ExampleSecret() {
	config := struct {
		User     string
		Password notify.Secret
	}{"weir", "hunter2"}
	text, _ := json.Marshal(config)
	fmt.Printf("%v %#v %s\n", config, config.Password, text)
	// Output:
	// {weir …} … {"User":"weir","Password":"…"}
}

func ExampleNewAlertmanager() {
	// Every member of a cluster gets the alerts.
	var members []alert.Notifier
	for _, member := range []string{"a", "b"} {
		members = append(members, notify.NewAlertmanager(notify.Config{
			Name: "alertmanager-" + member, URL: notify.Secret("http://" + member + ".alertmanager.example:9093"),
			Header: map[string]notify.Secret{"Authorization": notify.Secret("Bearer " + os.Getenv("ALERTMANAGER_TOKEN"))},
		}))
	}
	fmt.Println(members)
	// Output:
	// [notifier "alertmanager-a" notifier "alertmanager-b"]
}

// offlineTransport is a transport without a network.
type offlineTransport struct{}

func (offlineTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to https://hooks.slack.example/services/T0/B0/XX")
}

func ExampleNewSlack() {
	slack := notify.NewSlack(notify.Config{URL: "https://hooks.slack.example/services/T0/B0/XX", Transport: offlineTransport{}})
	fmt.Println(slack.Notify(context.Background(), alert.Alert{Rule: "fire", State: alert.Firing}))
	// Output:
	// alert: not delivered: no connection
}

func ExampleNewMail() {
	mail := notify.NewMail(notify.MailConfig{
		Server: "smtp.example.com:587", User: "weir", Password: notify.Secret(os.Getenv("SMTP_PASSWORD")),
		From: "weir <weir@example.com>", To: []string{"on-call@example.com"},
	})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{mail}})
	fmt.Println(mail, len(monitor.Alerts()))
	// Output:
	// notifier "mail" 0
}

func ExampleMailConfig() {
	fmt.Println(notify.MailConfig{Server: "smtp.example.com", From: "weir@example.com", To: []string{"on-call@example.com"}}.Validate())
	// Output:
	// notify: Server (not shown) must be a host and a port, such as smtp.example.com:587
}

func ExampleNewPagerDuty() {
	pager := notify.NewPagerDuty(notify.Config{Transport: offlineTransport{}}, "0123456789abcdef0123456789abcdef")
	fmt.Println(pager, pager.Notify(context.Background(), alert.Alert{Rule: "fire", State: alert.Firing}))
	// Output:
	// notifier "pagerduty" alert: not delivered: no connection
}

// The address and the message are templates for an API in the form of Opsgenie's.
func ExampleNewTemplateWebhook() {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.URL, string(body))
	}))
	defer api.Close()
	hook := notify.NewTemplateWebhook(notify.Config{
		Name: "opsgenie", URL: notify.Secret(api.URL + `/v2/alerts{{if eq .State "resolved"}}/{{.ID}}/close{{end}}?identifierType=alias`),
		Header: map[string]notify.Secret{"Authorization": notify.Secret("GenieKey " + os.Getenv("OPSGENIE_KEY"))},
	}, `{"message":"{{.Rule}}","alias":"{{.ID}}","description":{{.Summary}}}`)
	a := alert.Alert{ID: "4fe2a3b9c1d07765", Rule: "fire", Summary: `smoke in "hall 3"`, State: alert.Firing}
	_ = hook.Notify(context.Background(), a)
	a.State = alert.Resolved
	_ = hook.Notify(context.Background(), a)
	// Output:
	// /v2/alerts?identifierType=alias {"message":"fire","alias":"4fe2a3b9c1d07765","description":"smoke in \"hall 3\""}
	// /v2/alerts/4fe2a3b9c1d07765/close?identifierType=alias {"message":"fire","alias":"4fe2a3b9c1d07765","description":"smoke in \"hall 3\""}
}

func ExampleConfig() {
	fmt.Println(notify.Config{Name: "pager", URL: "pager.example/hooks/4f1c"}.Validate())
	// Output:
	// notify: URL (not shown) must be absolute, with scheme http or https
}
