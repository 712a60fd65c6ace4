/** What somebody prefers in this browser: theme and zone. A link does not carry it. */
import { useEffect, useState } from 'preact/hooks'
import { browserZone, type Zone } from './instants.ts'

export type Theme = 'dark' | 'light'

export interface Preferences {
  readonly theme: Theme
  readonly zone: Zone
  readonly toggleTheme: () => void
  readonly toggleZone: () => void
}

export function usePreferences(): Preferences {
  const [theme, setTheme] = useState<Theme>(() => (kept('theme') as Theme | undefined) ?? systemTheme())
  const [isUtc, setUtc] = useState(() => kept('zone') !== 'local')
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  return {
    theme,
    zone: isUtc ? 'UTC' : browserZone(),
    toggleTheme: () => setTheme(keep('theme', theme === 'dark' ? 'light' : 'dark')),
    toggleZone: () => setUtc(keep('zone', isUtc ? 'local' : 'UTC') === 'UTC'),
  }
}

function systemTheme(): Theme {
  return matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark'
}

/** A browser may forbid it: then nothing is kept. */
function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(`capfleet-${name}`) ?? undefined
  } catch {
    return undefined
  }
}

function keep<Value extends string>(name: string, value: Value): Value {
  try {
    localStorage.setItem(`capfleet-${name}`, value)
  } catch {
    // It holds until the page is left.
  }
  return value
}
