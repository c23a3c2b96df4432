package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gaol/policy"
)

func newPolicyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "See what a policy allows",
		Args:  unknownVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyShowCommand(a))
	return c
}

func newPolicyShowCommand(a *app) *cobra.Command {
	var files []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the effective policy, each value with the layer that set it",
		Example: `  gaol policy show
  gaol policy show --policy strict.toml
  gaol policy show --json | jq .policy.limits`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.policyShow(files, asJSON) },
	}
	c.Flags().StringArrayVar(&files, "policy", nil, "narrow by this policy `file`; several narrow in turn")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) policyShow(files []string, asJSON bool) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	effective, err := cfg.policy(files)
	if err != nil {
		return err
	}
	clamps := make([]string, 0, len(effective.Clamps))
	for _, c := range effective.Clamps {
		clamps = append(clamps, c.String())
	}
	if asJSON {
		return encodeJSON(a.stdout, map[string]any{
			"policy": effective.Policy, "source": effective.Source, "clamps": clamps, "hash": effective.Policy.Hash(),
		})
	}
	values, err := flatten(effective.Policy)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, field := range policy.Fields() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", field, values[field], lineText(effective.Source[field]))
	}
	fmt.Fprintf(w, "hash\t%s\n", effective.Policy.Hash())
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range clamps {
		fmt.Fprintf(a.stdout, "note: %s\n", lineText(c))
	}
	return nil
}

// flatten turns a policy into its dotted keys and printed values.
func flatten(p policy.Policy) (map[string]string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("print the policy: %w", err)
	}
	var tables map[string]map[string]any
	if err := json.Unmarshal(data, &tables); err != nil {
		return nil, fmt.Errorf("print the policy: %w", err)
	}
	values := map[string]string{}
	for table, keys := range tables {
		for key, value := range keys {
			values[table+"."+key] = valueText(value)
		}
	}
	return values, nil
}

func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return "all of the built-in profile"
	case []any:
		if len(v) == 0 {
			return "none"
		}
		items := make([]string, 0, len(v))
		for _, item := range v {
			items = append(items, fmt.Sprint(item))
		}
		return safeText(strings.Join(items, " "))
	default:
		return safeText(fmt.Sprint(v))
	}
}
