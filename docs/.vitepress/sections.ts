/** The pages in the order in which the site lists them: their titles and their paths without ".md". */

export interface Section {
  readonly text: string
  readonly pages: readonly (readonly [title: string, path: string])[]
}

export const SECTIONS: readonly Section[] = [
  {
    text: 'Get started',
    pages: [
      ['The demo', 'get-started/demo'],
      ['A fleet of your own', 'get-started/fleet'],
      ['Installation with systemd', 'get-started/systemd'],
      ['Kubernetes', 'get-started/kubernetes'],
    ],
  },
  {
    text: 'Guides',
    pages: [
      ['Common tasks', 'guides/common-tasks'],
      ['Add a device', 'guides/add-a-device'],
      ['Third-party appliances', 'guides/third-party-appliances'],
      ['Retention', 'guides/retention'],
      ['TLS', 'guides/tls'],
      ['Users and bounds', 'guides/users'],
      ['Tokens, links and sessions', 'guides/tokens'],
      ['An identity provider', 'guides/identity-provider'],
      ['Schedules and exports', 'guides/exports'],
      ['From an alert to packets', 'guides/siem'],
      ['Packets in the browser', 'guides/look-inside'],
      ['Python, PowerShell and Go', 'guides/clients'],
      ['Behind nginx, haproxy or Caddy', 'guides/proxies'],
      ['Debian packages', 'guides/packages'],
      ['Upgrade', 'guides/upgrade'],
      ['Backup', 'guides/backup'],
      ['Sizing', 'guides/sizing'],
    ],
  },
  {
    text: 'Concepts',
    pages: [
      ['The queue', 'concepts/queue'],
      ['Receipts and resuming', 'concepts/receipts'],
      ['Merging', 'concepts/merging'],
      ['Time', 'concepts/time'],
      ['Completeness', 'concepts/completeness'],
    ],
  },
  {
    text: 'Operations',
    pages: [
      ['Running the programs', 'operations/running'],
      ['Container images', 'operations/images'],
      ['Audit', 'operations/audit'],
      ['Alerts', 'operations/alerts'],
      ['Runbook', 'operations/runbook'],
      ['Limits', 'operations/limits'],
      ['Report a vulnerability', 'operations/security'],
      ['Changelog', 'operations/changelog'],
    ],
  },
  {
    text: 'Reference',
    pages: [
      ['Paths', 'reference/paths'],
      ['Parameters', 'reference/parameters'],
      ['Headers and trailers', 'reference/headers'],
      ['Errors', 'reference/errors'],
      ['Downloads', 'reference/downloads'],
      ['Captures', 'reference/captures'],
      ['Activity and events', 'reference/activity-and-events'],
      ['Where an address was seen', 'reference/seen'],
      ['Command line', 'reference/command-line'],
      ['Settings', 'reference/settings'],
      ['Metrics', 'reference/metrics'],
      ['Logs and traces', 'reference/logs-and-traces'],
      ['Measured', 'reference/measured'],
    ],
  },
]
