// Package see shows an operator what a process knows of its loop: one page at / of the admin
// port, which needs no network but this process, the JSON behind it at /state, and the life of
// a round at /explain. The alarms of that page are those of the rules for Prometheus, which
// are made here from the same list, as is the dashboard for Grafana.
package see
