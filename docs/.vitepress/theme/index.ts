/** The theme without its fonts: each machine has one of its own, and the site loads less. */
import theme from 'vitepress/theme-without-fonts'

// biome-ignore lint/style/noDefaultExport: vitepress takes the theme so
export default theme
