/** A time in the format of C's ctime(): "Fri Nov 20 09:30:00 2026", in the zone. Scripts match on it. */
export function ctime(date: Date, timeZone: string): string {
  const parts: Record<string, string> = {}
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    month: 'short',
    day: 'numeric',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
  for (const { type, value } of format.formatToParts(date)) parts[type] = value
  const { weekday, month, day = '', hour, minute, second, year } = parts
  return `${weekday} ${month} ${day.padStart(2)} ${hour}:${minute}:${second} ${year}`
}
