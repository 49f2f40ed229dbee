/*
 * The page of hdiff -o html. Its data is in the element "data": the report in the form of hdiff-json(5), except that
 * frames are indexes in "frames". Texts are inserted as text, never as markup.
 */
const $ = id => document.getElementById(id);
const report = JSON.parse($('data').textContent);
const started = performance.now();

// ---------------------------------------------------------------- light and dark

const darkened = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (document.documentElement.dataset.theme ?? (darkened.matches ? 'dark' : 'light')) === 'dark';

function setTheme(theme) {
	if (theme)
		document.documentElement.dataset.theme = theme;
	else
		delete document.documentElement.dataset.theme;
	$('theme').textContent = isDark() ? 'Light' : 'Dark';
}

if (!report) // a chart, which has its own colours
	return;
