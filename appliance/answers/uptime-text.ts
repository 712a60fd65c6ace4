const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

/** An uptime in the format used by devices of this kind: "0D 1H 57M". */
export function uptimeText(seconds: number): string {
  const days = Math.floor(seconds / DAY_S)
  const hours = Math.floor((seconds % DAY_S) / HOUR_S)
  return `${days}D ${hours}H ${Math.floor((seconds % HOUR_S) / MINUTE_S)}M`
}
