// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "debug.h"
#include "demangle-rust-v0.h"
#include "tests.h"

/* The examples of the "v0 Symbol Format", with the demanglings that it recommends. */
static const char *const names[][2] = {
	{ "_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	  "<std::path::PathBuf>::new" },
	{ "_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example" },
	{ "_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_7Example3foo", "<mycrate::Example>::foo" },
	{ "_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
	  "<mycrate::Example as mycrate::Trait>::foo" },
	{ "_RNvYNtCs15kBYyAo9fc_7mycrate7ExampleNtB4_5Trait7exampleB4_",
	  "<mycrate::Example as mycrate::Trait>::example" },
	{ "_RNCNvCsgStHSCytQ6I_7mycrate4main0B3_", "mycrate::main::{closure#0}" },
	{ "_RNCNvCsgStHSCytQ6I_7mycrate4mains_0B3_", "mycrate::main::{closure#1}" },
	{ "_RINvCsgStHSCytQ6I_7mycrate7examplelKj1_EB2_", "mycrate::example::<i32, 1>" },
	{ "_RNvNtNtCsgOH4LzxkuMq_7mycrateu8gdel_5qa6escher4bach",
	  "mycrate::g\303\266del::escher::bach" },
	{ "_RINvCs7qp2U7fqm6G_7mycrate7exampleFG0_RL1_hRL0_tEuEB2_",
	  "mycrate::example::<for<'a, 'b> fn(&'a u8, &'b u16)>" },
	{ "_RINvCs7qp2U7fqm6G_7mycrate7exampleKy12345678_EB2_", "mycrate::example::<305419896>" },
	{ "_RNvNvMCsd9PVOYlP1UU_7mycrateINtB4_7ExamplepKpE3foo14EXAMPLE_STATIC",
	  "<mycrate::Example<_, _>>::foo::EXAMPLE_STATIC" },
	{ "_RINvCs7qp2U7fqm6G_7mycrate7exampleAtj8_EB2_", "mycrate::example::<[u16; 8]>" },
	{ "_RINvCs7qp2U7fqm6G_7mycrate7exampleNtB2_7ExampleBw_EB2_",
	  "mycrate::example::<mycrate::Example, mycrate::Example>" },
	{ "_RINvMsY_NtCseXNvpPnDBDp_3std4pathNtB6_4Path3neweECs7qp2U7fqm6G_7mycrate",
	  "<std::path::Path>::new::<str>" },
	{ "_RNvNvNvCs7qp2U7fqm6G_7mycrate7EXAMPLE7___getit5___KEY$tlv$init",
	  "mycrate::EXAMPLE::__getit::__KEY" },
	/* Other cases: a suffix of LLVM, and names that are not v0 names. */
	{ "_RNvCs15kBYyAo9fc_7mycrate7example.llvm.123", "mycrate::example" },
	{ "_RNvCs15kBYyAo9fc_7mycrate8example", NULL },
	{ "_RNvCs15kBYyAo9fc_7mycrate7example_", NULL },
	{ "_R1NvCs15kBYyAo9fc_7mycrate7example", NULL },
	{ "_RNvB_7example", NULL },
	{ "_RINvC1a1bTuETB7_B7_E", NULL },
	{ "_RINvC1a1bRL0_hE", NULL },
	{ "_RC0", NULL },
	{ "_R", NULL },
	{ "main", NULL },
};

static int test__demangle_rust_v0(struct test_suite *test __maybe_unused,
				  int subtest __maybe_unused)
{
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *demangled = rust_v0_demangle_sym(names[i][0]);

		if (!demangled != !names[i][1] ||
		    (demangled && strcmp(demangled, names[i][1]))) {
			pr_debug("%s: %s, not %s\n", names[i][0], demangled ?: "(null)",
				 names[i][1] ?: "(null)");
			ret = TEST_FAIL;
		}
		free(demangled);
	}
	return ret;
}

DEFINE_SUITE("Demangle Rust v0", demangle_rust_v0);
