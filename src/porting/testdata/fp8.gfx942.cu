__nv_fp8_e4m3 a;  //! error fp8 //-> __hip_fp8_e4m3_fnuz a;
auto b = __NV_E5M2;  //! error fp8 //-> auto b = __HIP_E5M2_FNUZ;
