/** The page of the documentation for each view: addresses relative to the page, which may be below any path. */
import type { View } from './page-url.ts'

export const HELP_PAGES: Readonly<Record<View, string>> = {
  fleet: 'docs/guides/add-a-device.html',
  timeline: 'docs/guides/common-tasks.html',
  inside: 'docs/guides/look-inside.html',
  queue: 'docs/concepts/queue.html',
  exports: 'docs/guides/exports.html',
  events: 'docs/reference/activity-and-events.html#events-of-the-fleet',
  access: 'docs/guides/tokens.html',
  pivot: 'docs/guides/siem.html',
}
