// Package see shows an operator what a process knows of its loop: one page at / of the admin port, which needs no
// network but this process, the JSON behind it at /state, and the life of a round at /explain. The alarms of that page
// are the rules for Prometheus (assets/alerts.yml), evaluated over the metrics of this process.
package see
