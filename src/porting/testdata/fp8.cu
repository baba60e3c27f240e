__nv_fp8_e4m3 a = __nv_fp8_e4m3(1.0f);  //-> __hip_fp8_e4m3 a = __hip_fp8_e4m3(1.0f);
auto b = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);  //-> auto b = __hip_cvt_float_to_fp8(x, __HIP_SATFINITE, __HIP_E4M3);
__hip_fp8_e4m3 c;
